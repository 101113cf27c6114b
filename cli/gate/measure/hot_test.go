package measure

import "testing"

// TestOfModule tells functions of a Go program and of its modules from those of the standard library.
func TestOfModule(t *testing.T) {
	for id, want := range map[string]bool{
		"xxhsum:main.run": true, "xxhsum:github.com/cespare/xxhash/v2.(*Digest).Write": true, "xxhsum:runtime.mallocgc": false,
		"xxhsum:internal/poll.(*FD).Read": false, "shop:price": false, "shop:a.b": false,
	} {
		if got := ofModule(id); got != want {
			t.Errorf("%s: %t", id, got)
		}
	}
}
