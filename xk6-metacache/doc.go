// Package metacache is the JavaScript module k6/x/metacache: a fleet of
// metadata-cache clients that a k6 script reads and writes through.
//
//	import metacache from 'k6/x/metacache';
//	const fleet = new metacache.Fleet({ clients: 1000, ttl: '60s', jitter: 0.2 });
//	export default function () {
//	  const r = fleet.read(`item-${__ITER % 2000}`);
//	}
//
// The module depends on no particular engine: it sees its VU through
// [script.Host].
package metacache
