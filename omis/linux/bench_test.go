//go:build linux && amd64

package linux

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/omis/node"
)

// BenchmarkHit measures a hit of a breakpoint, with monitor and target on the same processor and on two.
func BenchmarkHit(b *testing.B) {
	hammer := build(b, "hammer.c")
	for _, cpus := range []int{1, 2} {
		b.Run(fmt.Sprintf("cpus=%d", cpus), func(b *testing.B) {
			g := start(b, "/usr/bin/taskset", "-c", "0", hammer, "1", fmt.Sprint(b.N))
			n := openNode(b)
			pinned := false
			cancel, err := n.Watch(node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: g.Addr}, func(*node.Hit) {
				if !pinned {
					pinned = true // on the owner's thread
					pin(b, cpus-1)
				}
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			g.Begin()
			g.Line()
			b.StopTimer()
			if err := cancel(); err != nil {
				b.Error(err)
			}
		})
	}
}

func pin(b *testing.B, cpu int) {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		b.Error(err)
	}
}
