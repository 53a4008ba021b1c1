package output

import (
	"maps"
	"math"
	"slices"
)

const (
	// histogramSchema divides each power of two into 2^3 buckets, so that a
	// value is known within 9 %.
	histogramSchema = 3
	// zeroThreshold is the width of the bucket around zero.
	zeroThreshold = 0x1p-128
)

// histogram is a native histogram as Prometheus defines it: counts by
// exponential buckets. Its size depends on the range of the values only.
type histogram struct {
	count, zeros       uint64
	sum                float64
	positive, negative map[int]uint64 // by index
}

func newHistogram() *histogram {
	return &histogram{positive: map[int]uint64{}, negative: map[int]uint64{}}
}

func (h *histogram) add(v float64) {
	if math.IsNaN(v) {
		return
	}
	h.count++
	h.sum += v
	switch {
	case math.Abs(v) <= zeroThreshold:
		h.zeros++
	case v > 0:
		h.positive[bucketOf(v)]++
	default:
		h.negative[bucketOf(-v)]++
	}
}

// bucketOf returns the index i for which base^(i-1) < v <= base^i, with
// base = 2^(2^-schema).
func bucketOf(v float64) int {
	return int(math.Ceil(math.Log2(math.Min(v, math.MaxFloat64)) * (1 << histogramSchema)))
}

// bucketSpan is a run of buckets that follow each other.
type bucketSpan struct {
	offset int32 // from the end of the span before; of the first, the index itself
	length uint32
}

// spans returns the buckets as runs, and of each the difference to the count
// of the one before, which is how they are sent.
func spans(buckets map[int]uint64) (all []bucketSpan, deltas []int64) {
	next, before := 0, int64(0)
	for i, index := range slices.Sorted(maps.Keys(buckets)) {
		if i == 0 || index != next {
			all = append(all, bucketSpan{offset: int32(index - next)})
		}
		all[len(all)-1].length++
		count := int64(buckets[index])
		deltas = append(deltas, count-before)
		next, before = index+1, count
	}
	return all, deltas
}
