package results

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestMailboxWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailbox[int](4, time.Second)
		done := make(chan time.Duration)
		start := time.Now()
		go func() {
			m.put(1, 2, 3, 4, 5, 6)
			done <- time.Since(start)
		}()
		time.Sleep(300 * time.Millisecond)
		first, _ := m.take(nil)
		if waited := <-done; waited != 300*time.Millisecond {
			t.Errorf("the sender waited %v, want until there was room", waited)
		}
		second, open := m.take(nil)
		equal(t, append(first, second...), []int{1, 2, 3, 4, 5, 6})
		if !open || m.lostSoFar() != 0 {
			t.Errorf("open = %v, lost = %d", open, m.lostSoFar())
		}
	})
}

func TestMailboxLosesAfterItsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailbox[int](2, time.Second)
		start := time.Now()
		m.put(1, 2, 3)
		if waited := time.Since(start); waited != time.Second || m.lostSoFar() != 1 {
			t.Errorf("waited %v and lost %d, want 1s and 1", waited, m.lostSoFar())
		}
		m.put(4, 5) // the stall goes on: it was waited for once
		if waited := time.Since(start); waited != time.Second || m.lostSoFar() != 3 {
			t.Errorf("waited %v and lost %d, want 1s and 3", waited, m.lostSoFar())
		}
		items, _ := m.take(nil)
		m.put(6)
		more, _ := m.take(items)
		equal(t, more, []int{6})
		m.put(7, 8, 9) // a new stall is waited for anew
		if waited := time.Since(start); waited != 2*time.Second || m.lostSoFar() != 4 {
			t.Errorf("waited %v and lost %d, want 2s and 4", waited, m.lostSoFar())
		}
	})
}

func TestMailboxNudgesBeforeItIsFull(t *testing.T) {
	m := newMailbox[int](4, time.Second)
	m.put(1, 2, 3)
	select {
	case <-m.wake:
	default:
		t.Error("the receiver was not woken although the mailbox is more than half full")
	}
}

func TestMailboxCountsWhatComesAfterClose(t *testing.T) {
	m := newMailbox[int](4, time.Second)
	m.put(1)
	m.close()
	m.put(2, 3)
	items, open := m.take(nil)
	equal(t, items, []int{1})
	if open || m.lostSoFar() != 2 {
		t.Errorf("open = %v, lost = %d, want closed and 2", open, m.lostSoFar())
	}
}
