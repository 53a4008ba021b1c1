package load

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Share says which part of a load this process makes, when several processes
// make it together. Numbered things — virtual users, iterations, starts — are
// dealt out in stripes: of two halves, one takes 0, 2, 4… and the other 1, 3,
// 5…, so that the parts add up exactly at every moment. The zero Share is all
// of it. It is immutable.
type Share struct {
	parts  []int64 // how many of cycle numbers each part gets, in their order
	mine   int     // index into parts
	cycle  int64
	stripe []int64 // which of the numbers 0 … cycle-1 are mine, rising
}

// maxCycle bounds the common denominator of a sequence, and so the memory of
// a stripe.
const maxCycle = 1_000_000

// ParseShare reads an execution segment, "1/4:1/2" (or "25%", which is
// "0:1/4"), and the sequence of all segments of the test, "0,1/4,1/2,1".
// Without a sequence, what lies below and above the segment is one part each.
// An empty segment is "0:1".
func ParseShare(segment, sequence string) (Share, error) {
	from, to, err := parseSegment(segment)
	if err != nil {
		return Share{}, fmt.Errorf("executionSegment: %w", err)
	}
	bounds := fill(from, to)
	if sequence != "" {
		if bounds, err = parseSequence(sequence); err != nil {
			return Share{}, fmt.Errorf("executionSegmentSequence: %w", err)
		}
	}
	mine := -1
	for i := range bounds[1:] {
		if bounds[i].Cmp(from) == 0 && bounds[i+1].Cmp(to) == 0 {
			mine = i
		}
	}
	if mine < 0 {
		return Share{}, fmt.Errorf("executionSegment: the sequence %s has no part from %s to %s: want two neighbours of the sequence",
			sequence, from.RatString(), to.RatString())
	}
	parts, err := numerators(bounds)
	if err != nil {
		return Share{}, fmt.Errorf("executionSegmentSequence: %w", err)
	}
	return newShare(parts, mine), nil
}

// fill completes a segment to a sequence from 0 to 1.
func fill(from, to *big.Rat) []*big.Rat {
	bounds := []*big.Rat{new(big.Rat), from, to, big.NewRat(1, 1)}
	return slices.CompactFunc(bounds, func(a, b *big.Rat) bool { return a.Cmp(b) == 0 })
}

func parseSegment(text string) (from, to *big.Rat, err error) {
	if text == "" {
		text = "0:1"
	}
	low, high, ok := strings.Cut(text, ":")
	if !ok {
		low, high = "0", text
	}
	if from, err = parseFraction(low); err == nil {
		to, err = parseFraction(high)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case from.Cmp(to) >= 0:
		return nil, nil, fmt.Errorf("%q: want FROM:TO with FROM below TO", text)
	}
	return from, to, nil
}

func parseSequence(text string) ([]*big.Rat, error) {
	var bounds []*big.Rat
	for item := range strings.SplitSeq(text, ",") {
		b, err := parseFraction(item)
		if err != nil {
			return nil, err
		}
		if n := len(bounds); n > 0 && bounds[n-1].Cmp(b) >= 0 {
			return nil, fmt.Errorf("%q: want numbers that rise, got %s after %s", text, b.RatString(), bounds[n-1].RatString())
		}
		bounds = append(bounds, b)
	}
	if len(bounds) < 2 || bounds[0].Sign() != 0 || bounds[len(bounds)-1].Cmp(big.NewRat(1, 1)) != 0 {
		return nil, fmt.Errorf("%q: want a sequence from 0 to 1, for example 0,1/4,1/2,1", text)
	}
	return bounds, nil
}

// parseFraction reads 1/3, 0.25 or 25%, from 0 to 1. Exponents are not among
// the forms: a few bytes of them can ask for gigabytes of digits.
func parseFraction(text string) (*big.Rat, error) {
	text = strings.TrimSpace(text)
	number, percent := strings.CutSuffix(text, "%")
	bad := fmt.Errorf("%q: want a fraction from 0 to 1, such as 1/3, 0.25 or 25%%", text)
	if len(number) == 0 || len(number) > 40 || strings.Trim(number, "0123456789./") != "" {
		return nil, bad
	}
	f, ok := new(big.Rat).SetString(number)
	if !ok {
		return nil, bad
	}
	if percent {
		f.Quo(f, big.NewRat(100, 1))
	}
	if f.Sign() < 0 || f.Cmp(big.NewRat(1, 1)) > 0 {
		return nil, bad
	}
	return f, nil
}

// numerators returns the lengths of the parts over their common denominator.
func numerators(bounds []*big.Rat) ([]int64, error) {
	common := big.NewInt(1)
	for _, b := range bounds {
		gcd := new(big.Int).GCD(nil, nil, common, b.Denom())
		common.Mul(common, new(big.Int).Quo(b.Denom(), gcd))
		if !common.IsInt64() || common.Int64() > maxCycle {
			return nil, fmt.Errorf("the denominators have no common multiple up to %d: want simpler fractions", maxCycle)
		}
	}
	var parts []int64
	for i := range bounds[1:] {
		length := new(big.Rat).Sub(bounds[i+1], bounds[i])
		length.Mul(length, new(big.Rat).SetInt(common))
		parts = append(parts, length.Num().Int64())
	}
	return parts, nil
}

// newShare deals the numbers of one cycle. Every part is due a number each
// cycle/part numbers, on average; each number goes to the largest part that is
// due one, so that big parts are spread evenly and small ones fill the gaps.
func newShare(parts []int64, mine int) Share {
	s := Share{parts: parts, mine: mine}
	order := make([]int, len(parts))
	for i, p := range parts {
		order[i] = i
		s.cycle += p
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(parts[b], parts[a]) })
	got := make([]int64, len(parts))
	for number := range s.cycle {
		for _, part := range order {
			if got[part]*s.cycle <= number*parts[part] && got[part] < parts[part] {
				got[part]++
				if part == mine {
					s.stripe = append(s.stripe, number)
				}
				break
			}
		}
	}
	return s
}

// All reports whether the share is the whole load.
func (s Share) All() bool { return s.cycle == 0 || int64(len(s.stripe)) == s.cycle }

// Of returns how many of the numbers 0 … total-1 belong to the share.
func (s Share) Of(total int64) int64 {
	if s.All() || total <= 0 {
		return max(0, total)
	}
	rest, _ := slices.BinarySearch(s.stripe, total%s.cycle) // how many lie below
	return total/s.cycle*int64(len(s.stripe)) + int64(rest)
}

// Number returns the i-th number that belongs to the share, from 0. The share
// must not be empty.
func (s Share) Number(i uint64) uint64 {
	if s.All() {
		return i
	}
	n := uint64(len(s.stripe))
	return i/n*uint64(s.cycle) + uint64(s.stripe[i%n])
}

// Over returns the share that follows from dealing total things first: what
// those things do is divided as they are. Of one VU and two halves, the half
// that has the VU has all of its iterations.
func (s Share) Over(total int64) Share {
	if s.All() {
		return Share{}
	}
	parts := make([]int64, len(s.parts))
	for i := range parts {
		parts[i] = newShare(s.parts, i).Of(total)
	}
	return newShare(parts, s.mine)
}
