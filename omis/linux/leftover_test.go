//go:build linux && amd64

package linux

import (
	"bytes"
	"fmt"
	"testing"

	"mirador/omis/linux/subject"
)

// TestLeftovers: what a monitor left that was killed together with its warden is
// taken out as soon as another attaches; it need not trace for that.
func TestLeftovers(t *testing.T) {
	hammer := build(t, "hammer.c")
	want := subject.Alone(t, hammer, "4", "2000")
	g := start(t, hammer, "4", "2000")
	cmd, out := startMonitor(t, fmt.Sprintf("%d %#x plant nowarden", g.ID.PID, g.Addr))
	out.ReadString('\n')
	killMonitor(cmd)
	if memory, file := text(t, g); bytes.Equal(memory, file) {
		t.Fatal("nothing was left")
	}
	n := openNode(t)
	if _, err := n.Identify(g.ID.PID); err != nil {
		t.Fatal(err)
	}
	checkText(t, g)
	hits, cancel := watchWork(t, n, g)
	if _, err := n.Identify(g.ID.PID); err != nil { // those that stand now are ours
		t.Fatal(err)
	}
	g.Begin()
	if got := g.Line(); got != want || hits.Load() != 8000 {
		t.Errorf("%s with %d hits, want %s", got, hits.Load(), want)
	}
	if err := cancel(); err != nil {
		t.Error(err)
	}
	checkUntouched(t, g)
}
