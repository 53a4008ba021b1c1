package client

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Policy is the set of protections of a cache client. Each can be switched
// off, so that its worth can be measured. The zero Policy has none of them;
// [Recommended] has all that suit routing metadata.
type Policy struct {
	// TTL is how long an entry lives after it was pulled; 0 means that entries
	// never expire.
	TTL time.Duration
	// Jitter spreads every expiry uniformly over TTL·(1 ± Jitter); 0 … 1.
	Jitter float64
	// Push subscribes to the control plane's pushes.
	Push bool
	// OrderedPush applies a pushed or pulled entry only if its epoch is newer
	// than the cached one.
	OrderedPush bool
	// GapPull pulls everything after a hole in the sequence of pushes.
	GapPull bool
	// Epochs sends the cached epoch with every request, so that nodes can
	// check it.
	Epochs bool
	// RefreshOnMismatch pulls an entry after a node refused its epoch. Without
	// it the client follows the redirect in the refusal, if there is one.
	RefreshOnMismatch bool
	// PeriodicPull pulls everything at this interval; 0 never does.
	PeriodicPull time.Duration
	// Singleflight lets concurrent pulls of one object by the clients of one
	// process share one call.
	Singleflight bool
	// BackoffBase and BackoffMax bound the wait before a retry: uniform in
	// (0, min(BackoffMax, BackoffBase·2^attempt)]. A base of 0 does not wait.
	BackoffBase, BackoffMax time.Duration
	// MaxAttempts bounds the requests of one operation, the first included;
	// 0 means no bound but the operation's deadline.
	MaxAttempts int
	// MaxRedirects bounds how often one operation is sent to another shard;
	// negative means no bound.
	MaxRedirects int
}

// Recommended returns the protections for routing metadata with TTL 60 s.
func Recommended() Policy {
	return Policy{
		TTL: time.Minute, Jitter: 0.2,
		Push: true, OrderedPush: true, GapPull: true,
		Epochs: true, RefreshOnMismatch: true, Singleflight: true,
		BackoffBase: 5 * time.Millisecond, BackoffMax: 250 * time.Millisecond,
		MaxAttempts: 12, MaxRedirects: 3,
	}
}

// Validate returns an error that names the field which is out of its range.
func (p Policy) Validate() error {
	switch {
	case p.TTL < 0:
		return fmt.Errorf("ttl is negative: %s", p.TTL)
	case !(p.Jitter >= 0 && p.Jitter <= 1): // nor is it NaN
		return fmt.Errorf("jitter is %g, want 0 to 1", p.Jitter)
	case p.PeriodicPull < 0:
		return fmt.Errorf("periodicPull is negative: %s", p.PeriodicPull)
	case p.BackoffBase < 0 || p.BackoffMax < p.BackoffBase:
		return fmt.Errorf("backoff is %s to %s, want 0 or more and growing", p.BackoffBase, p.BackoffMax)
	case p.MaxAttempts < 0:
		return fmt.Errorf("maxAttempts is negative: %d", p.MaxAttempts)
	}
	return nil
}

// lifetime draws how long an entry lives.
func (p Policy) lifetime(rng *rand.Rand) time.Duration {
	return p.TTL + time.Duration((2*rng.Float64()-1)*p.Jitter*float64(p.TTL))
}

// lifetimeMet draws the whole life of an entry that one finds at a moment in
// the middle of it. Long lives are found more often, in proportion to their
// length (D. R. Cox, "Renewal Theory", 1962, section 5.4).
func (p Policy) lifetimeMet(rng *rand.Rand) time.Duration {
	low, high := 1-p.Jitter, 1+p.Jitter
	return time.Duration(math.Sqrt(low*low+rng.Float64()*(high*high-low*low)) * float64(p.TTL))
}

// spread draws a delay that keeps clients apart which are told one common
// deadline, over the same width as their jittered TTLs: 2·Jitter·TTL.
func (p Policy) spread(rng *rand.Rand) time.Duration {
	return time.Duration(rng.Float64() * 2 * p.Jitter * float64(p.TTL))
}

// backoff draws the wait before the retry that follows attempt n, counted
// from 1 (full jitter: M. Brooker, "Exponential Backoff And Jitter", AWS
// Architecture Blog, 2015).
func (p Policy) backoff(n int, rng *rand.Rand) time.Duration {
	if p.BackoffBase <= 0 {
		return 0
	}
	ceiling := p.BackoffMax
	if shift := n - 1; shift < 30 {
		ceiling = min(ceiling, p.BackoffBase<<shift)
	}
	return time.Duration(rng.Int64N(int64(ceiling))) + 1
}
