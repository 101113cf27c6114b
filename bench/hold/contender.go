//go:build linux && amd64

package hold

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/arch/x86/x86asm"

	"mirador/examples/child"
	"mirador/omis/linux"
)

// contender is a way to hold threads that call work, with a target of its own.
type contender struct {
	name    string
	missing bool // only the name is set
	hits    int  // in a round; slow contenders make fewer
	batches int  // in a round; 0: one
	target  *target
	end     func()
	each    []time.Duration // time of a hit by round, including the work
	least   time.Duration   // shortest time of a hit in all batches
}

// quick is the number of batches for contenders whose hits take microseconds: some short
// batches are undisturbed even on a busy machine. Batches that are too short would
// measure the wake-up of an idle monitor.
const quick = 4

// round measures one round.
func (c *contender) round(scale int) error {
	batches := max(c.batches, 1)
	n := max(c.hits/scale/batches, 1)
	var all time.Duration
	for range batches {
		d, err := c.target.calls(n)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		all += d
		if hit := d / time.Duration(n); c.least == 0 || hit < c.least {
			c.least = hit
		}
	}
	c.each = append(c.each, all/time.Duration(n*batches))
	return nil
}

// stat returns the least figure of all batches and the median of the rounds.
func (c *contender) stat() stat { return stat{c.least, summary(c.each).median} }

// without returns a contender that is missing; the table gives the reason.
func (b *bench) without(name string, why error) *contender {
	b.missing = append(b.missing, fmt.Sprintf("%s is missing: %v", name, why))
	return &contender{name: name, missing: true}
}

// bare calls work unwatched.
func (b *bench) bare() (*contender, error) {
	t, err := startTarget(b.program("target"))
	if err != nil {
		return nil, err
	}
	return &contender{name: "unwatched", hits: 200_000, batches: quick, target: t, end: t.Kill}, nil
}

// byPtrace uses the engine and the node, with a request that counts hits, in a program
// that must not be patched.
func (b *bench) byPtrace(threads int) (*contender, error) {
	return b.byEngine("ptrace", 4000, threads, linux.Config{Ptrace: true})
}

// byRendezvous does the same in a program that may be patched.
func (b *bench) byRendezvous(threads int) (*contender, error) {
	return b.byEngine("rendezvous", 8000, threads, linux.Config{})
}

func (b *bench) byEngine(way string, hits, threads int, c linux.Config) (*contender, error) {
	t, err := startTarget(b.program("target"), fmt.Sprint(threads))
	if err != nil {
		return nil, err
	}
	m, err := openRig(c)
	if err != nil {
		t.Kill()
		return nil, err
	}
	end := func() {
		t.Kill()
		b.note(m.close())
	}
	if err := m.count(t.PID, t.work, way, func() error { _, err := t.calls(1); return err }); err != nil {
		end()
		return nil, err
	}
	return &contender{name: way, hits: hits, batches: quick, target: t, end: end}, nil
}

// byInt3 is the reference for byPtrace.
func (b *bench) byInt3(threads int) (*contender, error) {
	t, err := startTarget(b.program("target"), fmt.Sprint(threads))
	if err != nil {
		return nil, err
	}
	code, err := text(b.program("target"), t.work)
	if err != nil {
		t.Kill()
		return nil, err
	}
	inst, err := x86asm.Decode(code, 64)
	if err != nil {
		t.Kill()
		return nil, err
	}
	cmd := exec.Command(b.program("int3"), fmt.Sprint(t.PID), fmt.Sprintf("%#x", t.work), fmt.Sprint(inst.Len), fmt.Sprintf("%#x", t.page))
	return beside(&contender{name: "C, out-of-line INT3", hits: 4000, batches: quick, target: t}, cmd, "ready")
}

// beside starts a process and waits for the line that says it is ready.
func beside(c *contender, cmd *exec.Cmd, ready string) (*contender, error) {
	c.end = c.target.Kill
	p, err := child.Start(cmd)
	if err != nil {
		c.end()
		return nil, err
	}
	c.end = func() {
		c.target.Kill()
		p.Kill()
	}
	for {
		switch s, err := p.Line(patience); {
		case err != nil:
			c.end()
			return nil, err
		case strings.HasPrefix(s, ready):
			go p.Discard()
			return c, nil
		}
	}
}

// byFutex is the reference for byRendezvous.
func (b *bench) byFutex() (*contender, error) {
	t, err := startTarget(b.program("rendezvous"))
	if err != nil {
		return nil, err
	}
	return &contender{name: "C, rendezvous", hits: 8000, batches: quick, target: t, end: t.Kill}, nil
}

// byGDB uses a breakpoint of gdb; commands follows the address in gdb's script.
func (b *bench) byGDB(name, commands string) (*contender, error) {
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		return b.without(name, err), nil
	}
	t, err := startTarget(b.program("target"))
	if err != nil {
		return nil, err
	}
	script := filepath.Join(b.dir, fmt.Sprintf("gdb-%d", t.PID))
	content := fmt.Sprintf("set pagination off\nset $sum = 0\nbreak *%#x %s\nshell echo ready\ncontinue\n", t.work, commands)
	if err := os.WriteFile(script, []byte(content), 0o600); err != nil {
		t.Kill()
		return nil, err
	}
	cmd := exec.Command(gdb, "-nx", "-q", "-batch", "-ex", "set debuginfod enabled off", "-p", fmt.Sprint(t.PID), "-x", script)
	c, err := beside(&contender{name: name, hits: 200, target: t}, cmd, "ready")
	return c, err
}
