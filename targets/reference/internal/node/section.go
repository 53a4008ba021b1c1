package node

import (
	"context"
	"fmt"
	"time"

	"github.com/metachaos/metachaos/targets"
)

// section is the critical section of an object that is being handed over: its
// writes are refused.
type section struct {
	token string
	until time.Time
}

// migrating reports whether the object's writes are held. A section that
// lapsed was not ended by its migration, which may have handed the object over
// without telling: the node then forgets the entry, so that it must ask the
// control plane before it accepts another write. The caller holds the lock.
func (d *Data) migrating(o targets.Object) bool {
	s, ok := d.sections[o]
	if !ok {
		return false
	}
	if time.Now().Before(s.until) {
		return true
	}
	delete(d.sections, o)
	delete(d.list, o)
	return false
}

// Hold begins or renews a critical section. A new one replaces what an earlier
// migration left: the control plane runs one migration of an object at a time,
// and one that was replaced can no longer renew.
func (d *Data) Hold(_ context.Context, o targets.Object, token string, lease time.Duration, renew bool) error {
	if err := d.needPrimary("hold"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if held := d.migrating(o); renew && (!held || d.sections[o].token != token) {
		return fmt.Errorf("renew the critical section of %s on %s: it has lapsed", o, d.self.ID)
	}
	d.sections[o] = section{token: token, until: time.Now().Add(lease)}
	return nil
}

// Release ends a section.
func (d *Data) Release(_ context.Context, o targets.Object, token string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.migrating(o) && d.sections[o].token == token {
		delete(d.sections, o)
	}
	return nil
}

// Export returns the documents of an object.
func (d *Data) Export(_ context.Context, o targets.Object) ([]targets.Document, error) {
	if err := d.needPrimary("export"); err != nil {
		return nil, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.state.of(o), nil
}

// Import replaces the documents of an object, orphans of an earlier stay
// included, and waits until they have replicated.
func (d *Data) Import(ctx context.Context, o targets.Object, documents []targets.Document) error {
	if err := d.needPrimary("import"); err != nil {
		return err
	}
	records := []record{{kind: recordPurge, object: o}}
	for _, doc := range documents {
		records = append(records, record{kind: recordPut, object: o, document: doc})
	}
	position, err := d.appendThroughGate(ctx, records...)
	if err != nil {
		return fmt.Errorf("import %s: %w", o, err)
	}
	if err := d.awaitReplication(ctx, position); err != nil {
		return fmt.Errorf("import %s: %w", o, err)
	}
	return nil
}

// Adopt applies an entry at once, in memory first: fencing must not wait for
// a disk. The write follows as with any refresh.
func (d *Data) Adopt(_ context.Context, e targets.Entry) error {
	if err := d.needPrimary("adopt"); err != nil {
		return err
	}
	if _, ok := d.known[e.Object]; !ok {
		return fmt.Errorf("adopt: there is no object %s", e.Object)
	}
	d.mu.Lock()
	d.learn(e)
	delete(d.sections, e.Object)
	d.mu.Unlock()
	d.flights.start(e.Object)
	return nil
}

// Purge deletes the documents of an object. Secondaries learn of the new owner
// first: one that held the old entry would else serve an emptied range as its
// own.
func (d *Data) Purge(ctx context.Context, o targets.Object) error {
	if err := d.needPrimary("purge"); err != nil {
		return err
	}
	_, err := d.Flush(ctx, o)
	if err == nil {
		_, err = d.appendThroughGate(ctx, record{kind: recordPurge, object: o})
	}
	if err != nil {
		return fmt.Errorf("purge %s: %w", o, err)
	}
	return nil
}

func (d *Data) appendThroughGate(ctx context.Context, records ...record) (int64, error) {
	if err := d.passGate(ctx); err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.append(records...)
}
