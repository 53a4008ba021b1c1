package stats

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

const (
	// ExactValues is the number of values up to which a Trend is exact.
	ExactValues = 4096
	// RelativeError bounds how far a percentile of a larger Trend may be from
	// the value that stands there, as a share of that value.
	RelativeError = 0.01
	// sketchError leaves room for rounding under RelativeError.
	sketchError = 0.0098
)

var _ Sink = (*Trend)(nil)

// Trend describes the distribution of values. It keeps up to [ExactValues] of
// them as they are; beyond, it counts them in logarithmic bins, whose number
// depends on the range of the values only. Count, avg, min and max are always
// exact. The zero Trend is ready to use.
type Trend struct {
	exact    []float64 // nil once bins are in use
	sorted   bool
	bins     *bins
	count    uint64
	sum      float64
	min, max float64
}

// Add takes one value. Values beyond the range of the bins count as the
// nearest one within.
func (t *Trend) Add(_ time.Duration, value float64) {
	if math.IsNaN(value) {
		return
	}
	t.observe(1, value, value, value)
	if t.bins != nil {
		t.bins.add(value, 1)
		return
	}
	t.exact = append(t.exact, value)
	t.sorted = false
	if len(t.exact) > ExactValues {
		t.toBins()
	}
}

// Merge takes in the values of o, which stays as it is.
func (t *Trend) Merge(o *Trend) {
	if o.count == 0 {
		return
	}
	t.observe(o.count, o.sum, o.min, o.max)
	if o.bins != nil || len(t.exact)+len(o.exact) > ExactValues {
		t.toBins()
	}
	switch {
	case o.bins != nil:
		t.bins.merge(o.bins)
	case t.bins != nil:
		for _, v := range o.exact {
			t.bins.add(v, 1)
		}
	default:
		t.exact = append(t.exact, o.exact...)
		t.sorted = false
	}
}

func (t *Trend) observe(n uint64, sum, low, high float64) {
	if t.count == 0 {
		t.min, t.max = low, high
	} else {
		t.min, t.max = math.Min(t.min, low), math.Max(t.max, high)
	}
	t.count += n
	t.sum += sum
}

func (t *Trend) toBins() {
	if t.bins != nil {
		return
	}
	t.bins = newBins()
	for _, v := range t.exact {
		t.bins.add(v, 1)
	}
	t.exact = nil
}

// Empty reports whether no value was added.
func (t *Trend) Empty() bool { return t.count == 0 }

// Stat knows count, avg, min, med, max and percentiles, which interpolate
// linearly between the two values around the rank.
func (t *Trend) Stat(s Stat, _ time.Duration) (float64, bool) {
	switch s.Kind {
	case Count:
		return float64(t.count), true
	case Avg:
		if t.count == 0 {
			return 0, true
		}
		return t.sum / float64(t.count), true
	case Min:
		return t.min, true
	case Max:
		return t.max, true
	case Med:
		return t.percentile(50), true
	case Percentile:
		return t.percentile(s.Percent), true
	}
	return 0, false
}

func (t *Trend) percentile(p float64) float64 {
	if t.count == 0 {
		return 0
	}
	rank := p / 100 * float64(t.count-1)
	below := math.Floor(rank)
	low := t.at(uint64(below))
	if rank == below {
		return low
	}
	high := t.at(uint64(below) + 1)
	return low + (high-low)*(rank-below)
}

// at returns the value of that rank, from 0.
func (t *Trend) at(rank uint64) float64 {
	switch {
	case rank == 0:
		return t.min
	case rank >= t.count-1:
		return t.max
	case t.bins != nil:
		return math.Min(math.Max(t.bins.at(float64(rank)), t.min), t.max)
	}
	if !t.sorted {
		slices.Sort(t.exact)
		t.sorted = true
	}
	return t.exact[rank]
}

// bins is a DDSketch that is read by rank: the quantiles of the library round
// their rank, and interpolation needs two neighbouring ones exactly.
type bins struct {
	scale              mapping.IndexMapping
	positive, negative store.Store
	zeros              float64
}

func newBins() *bins {
	scale, err := mapping.NewLogarithmicMapping(sketchError)
	if err != nil {
		panic(fmt.Sprintf("a relative error of %v is refused: %v", sketchError, err)) // a constant
	}
	return &bins{scale: scale, positive: store.NewBufferedPaginatedStore(), negative: store.NewBufferedPaginatedStore()}
}

func (b *bins) add(value, n float64) {
	size := math.Min(math.Abs(value), b.scale.MaxIndexableValue())
	switch {
	case size < b.scale.MinIndexableValue():
		b.zeros += n
	case value > 0:
		b.positive.AddWithCount(b.scale.Index(size), n)
	default:
		b.negative.AddWithCount(b.scale.Index(size), n)
	}
}

func (b *bins) merge(o *bins) {
	b.positive.MergeWith(o.positive)
	b.negative.MergeWith(o.negative)
	b.zeros += o.zeros
}

func (b *bins) at(rank float64) float64 {
	negatives := b.negative.TotalCount()
	switch {
	case rank < negatives:
		return -b.scale.Value(b.negative.KeyAtRank(negatives - 1 - rank))
	case rank < negatives+b.zeros:
		return 0
	default:
		return b.scale.Value(b.positive.KeyAtRank(rank - negatives - b.zeros))
	}
}
