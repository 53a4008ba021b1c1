// Package arrows holds the test that keeps the imports between packages
// pointing from machinery to vocabulary. ARCHITECTURE.md says why each arrow
// is there.
package arrows
