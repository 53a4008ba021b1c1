package faults

import (
	"fmt"
	"sync"
)

// claims says which injection holds a thing, so that of two injections on the
// same thing the second is refused, and undoing one does not undo the other.
// The zero claims holds nothing.
type claims[K comparable] struct {
	mu     sync.Mutex
	holder map[K]string
}

// take claims all keys for the injection, or none. One that holds a key
// already may not take it again: that would inject twice.
func (c *claims[K]) take(id string, keys []K) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		if holder, ok := c.holder[k]; ok {
			return fmt.Errorf("%v is held by the injection %q already", k, holder)
		}
	}
	if c.holder == nil {
		c.holder = map[K]string{}
	}
	for _, k := range keys {
		c.holder[k] = id
	}
	return nil
}

// foreign reports whether another injection than id holds the key.
func (c *claims[K]) foreign(id string, key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	holder, ok := c.holder[key]
	return ok && holder != id
}

// release lets go of whatever the injection holds.
func (c *claims[K]) release(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, holder := range c.holder {
		if holder == id {
			delete(c.holder, k)
		}
	}
}
