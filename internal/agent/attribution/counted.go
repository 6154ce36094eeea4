// SPDX-License-Identifier: Apache-2.0

package attribution

// Sum is the pointer to counts that can be added up. Subtract may make a count negative, modulo 2^64. A later addition makes
// it positive again.
type Sum[K any] interface {
	*K
	Add(*K)
	Subtract(*K)
}

// Counted is a [Member] whose counters are one value, except for InUse.
type Counted[K comparable, P Sum[K]] struct {
	Group[K]
	Counts K // as last read
	before K // as last read by Moved
}

// Moved implements [Member].
func (c *Counted[K, P]) Moved() bool {
	moved := c.before != c.Counts
	c.before = c.Counts
	return moved
}

// AddTo implements [Member].
func (c *Counted[K, P]) AddTo(ended *K) { P(ended).Add(&c.Counts) }

// SubtractFrom implements [Member].
func (c *Counted[K, P]) SubtractFrom(ended *K) { P(ended).Subtract(&c.Counts) }
