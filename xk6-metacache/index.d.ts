// Type definitions of k6/x/metacache: a fleet of metadata-cache clients that a
// k6 script reads and writes through.
//
// In a script:
//   /// <reference path="…/xk6-metacache/index.d.ts" />
//   import metacache from 'k6/x/metacache';

declare module 'k6/x/metacache' {
  /**
   * A number of milliseconds, or a text such as `'60s'`, `'1m30s'`, `'250ms'`
   * or `'1d'`.
   */
  export type Duration = number | string;

  /**
   * Options of a fleet. All VUs must make a fleet with the same ones. An option
   * that is missing, `undefined` or `null` keeps its default; an unknown one is
   * an error that names the nearest known one.
   */
  export interface FleetOptions {
    /**
     * How many logical clients there are, each with a cache of its own;
     * 1 to 10,000,000. All VUs share them, and they take turns.
     * @default 100
     */
    clients?: number;

    /**
     * All protections at once: `'recommended'` are the defaults below, `'none'`
     * has none of them (it keeps `ttl` and `maxAttempts`, and follows redirects
     * without end). It is applied first; other options change single
     * protections.
     * @default 'recommended'
     */
    protections?: 'recommended' | 'none';

    /**
     * How long an entry lives after it was pulled; 0 is for ever.
     * @default '60s'
     */
    ttl?: Duration;

    /**
     * Spreads every expiry evenly over ttl · (1 ± jitter); 0 to 1.
     * @default 0.2
     */
    jitter?: number;

    /**
     * Whether clients subscribe to the pushes of the control plane. The target
     * must be able to push.
     * @default true
     */
    push?: boolean;

    /**
     * Whether a pushed or pulled entry is applied only if its epoch is newer
     * than the cached one, so that late and doubled messages do no harm.
     * @default true
     */
    orderedPush?: boolean;

    /**
     * Whether a client pulls everything after it has missed a push: when it
     * sees a hole in the sequence, or when its stream broke and stands again.
     * @default true
     */
    gapPull?: boolean;

    /**
     * Whether requests carry the cached epoch, so that nodes can refuse a
     * stale one.
     * @default true
     */
    epochs?: boolean;

    /**
     * Whether a client pulls an entry after a node has refused its epoch.
     * Without it the client follows the redirect in the refusal, and does not
     * remember it.
     * @default true
     */
    refreshOnMismatch?: boolean;

    /**
     * The interval at which each client pulls everything; 0 is never. The
     * clients are spread evenly over the interval.
     * @default 0
     */
    periodicPull?: Duration;

    /**
     * Whether pulls of one object that happen at the same time share a call.
     * @default true
     */
    singleflight?: boolean;

    /**
     * Bounds the wait before the nth retry: a random time up to
     * min(backoffMax, backoffBase · 2ⁿ⁻¹). 0 waits only as long as the node
     * asks for.
     * @default '5ms'
     */
    backoffBase?: Duration;

    /**
     * See `backoffBase`, than which it must not be smaller.
     * @default '250ms'
     */
    backoffMax?: Duration;

    /**
     * The most requests of one operation, the first included; 0 is no limit
     * but `timeout`.
     * @default 12
     */
    maxAttempts?: number;

    /**
     * How often one operation is sent on to another shard at most; a negative
     * number is no limit.
     * @default 3
     */
    maxRedirects?: number;

    /**
     * When an expired entry is pulled again: by the next operation that needs
     * it (`'demand'`), or at once, whether or not anybody reads
     * (`'background'`).
     * @default 'demand'
     */
    refresh?: 'demand' | 'background';

    /**
     * Whether the fleet starts with full caches, whose entries expire at a
     * steady rate from the first moment on.
     * @default false
     */
    warm?: boolean;

    /**
     * Which nodes reads and scans go to. Writes go to the primary.
     * @default 'secondary'
     */
    readPreference?: 'primary' | 'secondary';

    /**
     * The read concern. `'available'` skips the check of epochs and the filter
     * of what a node owns: it answers always, and may return orphans.
     * @default 'local'
     */
    readConcern?: 'local' | 'majority' | 'available';

    /**
     * Bounds one operation with all its retries and pulls.
     * @default '2s'
     */
    timeout?: Duration;

    /**
     * Bounds one pull. When the control plane hangs, an operation goes on with
     * the last known entry once this has passed, so it should be shorter than
     * `timeout`.
     * @default '1s'
     */
    pullTimeout?: Duration;

    /**
     * The number of push subscriptions that the clients share.
     * @default 8
     */
    streams?: number;
  }

  /** How an operation ended: `'unknown'` may have happened. */
  export type Outcome = 'done' | 'refused' | 'unknown';

  /**
   * Why an operation was refused or is unknown; empty when it is done. A target
   * may have codes of its own.
   *
   * - `STALE_EPOCH`: the node holds a newer epoch than the request
   * - `NODE_BEHIND`: the node holds an older epoch and is refreshing
   * - `UNKNOWN_OWNERSHIP`: the node knows nothing of the object yet
   * - `NOT_OWNER`: another shard owns the object at this epoch
   * - `NOT_PRIMARY`: a write came to a node that takes none
   * - `MIGRATING`: the object is being handed over
   * - `TIMEOUT`: the time was over; with `refused`, before anything was sent or
   *   after every request had been refused
   * - `UNAVAILABLE`: no connection could be had, nothing was sent
   * - `CONNECTION_LOST`: the connection broke with the request under way
   * - `RETRIES_EXHAUSTED`, `REDIRECT_LIMIT`: the limits of the client
   * - `CONTROL_DOWN`: nothing was cached, and the control plane did not answer
   * - `INTERNAL`: an error of the target itself
   */
  export type Code =
    | ''
    | 'STALE_EPOCH'
    | 'NODE_BEHIND'
    | 'UNKNOWN_OWNERSHIP'
    | 'NOT_OWNER'
    | 'NOT_PRIMARY'
    | 'MIGRATING'
    | 'TIMEOUT'
    | 'UNAVAILABLE'
    | 'CONNECTION_LOST'
    | 'RETRIES_EXHAUSTED'
    | 'REDIRECT_LIMIT'
    | 'CONTROL_DOWN'
    | 'INTERNAL'
    | (string & {});

  /** What became of one operation. It cannot be changed. */
  export interface Result {
    /** Whether the operation is done. */
    readonly ok: boolean;
    readonly outcome: Outcome;
    readonly code: Code;
    /** The epoch that the last request carried; 0 if none. */
    readonly epochSent: number;
    /** The epoch that the last node held; 0 if it did not say. */
    readonly epochServed: number;
    /**
     * By how many versions the client was behind when it began; 0 when it was
     * not, and when that is not known.
     */
    readonly epochLag: number;
    /** The shard that the last node takes for the owner; empty if it did not say. */
    readonly owner: string;
    /** The node that was asked last; empty for scans that are done. */
    readonly node: string;
    /** The shard of that node. */
    readonly shard: string;
    /** The number of requests. */
    readonly hops: number;
    /** How often the operation was sent on to another shard. */
    readonly redirects: number;
    /** Whether it came back to a node under an epoch that was no newer. */
    readonly loop: boolean;
    /**
     * What the client's cache said; empty for scans, and where the target's own
     * client library keeps the map.
     */
    readonly cache: 'hit' | 'miss' | 'expired' | '';
    /** The number of documents that came back; of a write, the one that was written. */
    readonly documents: number;
    /** Scans: how many of them had come already. */
    readonly duplicates: number;
    /** Scans: how many documents that exist did not come. */
    readonly missing: number;
    /** Reads: the document as text; null if there is none. */
    readonly value: string | null;
    /** Reads and writes: the version of the document; 0 if there is none. */
    readonly version: number;
    /** Milliseconds from the call to its end, retries and pulls included. */
    readonly duration: number;
  }

  /** What a document can be made of. */
  export type Value = string | number | ArrayBuffer | Uint8Array | null | undefined;

  /** Operations of a fleet, or of one client of it. They can be called in `setup`, iterations and `teardown`. */
  export interface Operations {
    /** Reads one document. */
    read(key: string | number): Result;
    /** Writes one document. */
    write(key: string | number, value?: Value): Result;
    /**
     * Reads every document from all shards at once under the same epochs (a
     * scatter read), and counts what came twice or not at all.
     */
    scan(): Result;
    /** Reads documents in turn; the results are in the order of the keys. It is cheaper than as many calls of `read`. */
    readMany(keys: Iterable<string | number>): Result[];
  }

  /**
   * A fleet of cache clients. Make it at the top of the script. The nth fleet
   * of each VU is the same, and starts before the load does.
   *
   * Each operation records these metrics under the tags `op` (read, write,
   * scan), `outcome`, `kind` (of the object), `node`, `shard` and `cause` (the
   * code):
   *
   * - `metacache_ops` (counter): operations
   * - `metacache_op_duration` (trend, ms): how long they took
   * - `metacache_hops` (trend): requests per operation
   *
   * and these under `op` alone:
   *
   * - `metacache_cache_hits` (rate): reads and writes that found a live entry
   * - `metacache_epoch_lag` (trend): `epochLag` of reads and writes that are done
   * - `metacache_redirects` (counter): redirects
   * - `metacache_redirect_loops` (counter): operations that went in a circle
   * - `metacache_duplicates` (counter): documents that scans returned twice
   * - `metacache_missing` (counter): documents that scans did not return
   *
   * and, under `op` and `cause`:
   *
   * - `metacache_refusals` (counter): refusals by nodes, also those that a
   *   retry made good
   *
   * @example
   * const fleet = new metacache.Fleet({ clients: 1000, ttl: '60s', jitter: 0.2 });
   * export const options = { thresholds: { 'metacache_op_duration{op:read}': ['p(95)<50'] } };
   * export default function () {
   *   const r = fleet.read(`item-${__ITER % 2000}`);
   *   check(r, { served: (r) => r.ok, fresh: (r) => r.epochLag === 0 });
   * }
   */
  export class Fleet implements Operations {
    constructor(options?: FleetOptions);
    read(key: string | number): Result;
    write(key: string | number, value?: Value): Result;
    scan(): Result;
    readMany(keys: Iterable<string | number>): Result[];
    /** One client, by its number from 0. Its operations use one cache. */
    client(i: number): Operations;
  }

  const metacache: { readonly Fleet: typeof Fleet };
  export default metacache;
}
