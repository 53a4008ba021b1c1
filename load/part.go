package load

// Part returns what a share of the load does of the scenario, and false when
// that is nothing at all. The settings of s are those of the whole load; a
// part cannot be divided again.
func (s Scenario) Part(share Share) (Scenario, bool) {
	if share.All() {
		return s, true
	}
	count := func(vus int) int { return int(share.Of(int64(vus))) }
	s.share = share
	switch e := s.Executor.(type) {
	case ConstantVUs:
		e.Count = count(e.Count)
		s.Executor = e
	case PerVUIterations:
		e.Count = count(e.Count)
		s.Executor = e
	case SharedIterations:
		s.share = share.Over(int64(e.Count))
		e.Count, e.Iterations = count(e.Count), s.share.Of(e.Iterations)
		s.Executor = e
	case RampingVUs:
		_, most := e.VUs()
		s.Executor = rampPart{e, count(most)}
	case ConstantArrivalRate:
		s.share = share.Over(int64(e.MaxVUs))
		e.PreAllocatedVUs, e.MaxVUs = count(e.PreAllocatedVUs), count(e.MaxVUs)
		s.Executor = e
	case RampingArrivalRate:
		s.share = share.Over(int64(e.MaxVUs))
		e.PreAllocatedVUs, e.MaxVUs = count(e.PreAllocatedVUs), count(e.MaxVUs)
		s.Executor = e
	}
	_, most := s.Executor.VUs()
	return s, most > 0
}

// of returns the changes that are left of a share of the VUs.
func (s Share) of(changes []VUChange) []VUChange {
	var mine []VUChange
	for _, c := range changes {
		c.VUs = int(s.Of(int64(c.VUs)))
		if n := len(mine); n == 0 || mine[n-1].VUs != c.VUs {
			mine = append(mine, c)
		}
	}
	return mine
}

// rampPart is a share of a ramp: the ramp as a whole, with fewer VUs.
type rampPart struct {
	RampingVUs
	most int
}

var _ Executor = rampPart{}

// VUs returns the highest number of VUs of the share.
func (e rampPart) VUs() (ready, most int) { return e.most, e.most }
