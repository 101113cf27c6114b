//go:build linux && amd64

package inline

import "mirador/omis"

// Taken is how many slots are, in the process of a store.
func Taken(s omis.Store) int {
	t := s.(*store).target
	t.mu.Lock()
	defer t.mu.Unlock()
	t.meet()
	return len(t.known)
}
