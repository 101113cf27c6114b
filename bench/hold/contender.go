//go:build linux && amd64

package hold

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/linux/rendezvous"
)

// contender is a way to hold threads at work, set up in a target of its own.
type contender struct {
	name    string
	missing bool // there is nothing but its name
	hits    int  // of a round: those that are slow make fewer
	target  *target
	end     func()
	each    []time.Duration // of a hit, by round; with what work itself takes
}

// round measures one round.
func (c *contender) round(scale int) error {
	n := max(c.hits/scale, 1)
	d, err := c.target.calls(n)
	c.each = append(c.each, d/time.Duration(n))
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// without stands for a contender that cannot be had; the table tells why.
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
	return &contender{name: "unwatched", hits: 200_000, target: t, end: t.end}, nil
}

// byPtrace is the engine over the node, with a request that counts hits.
func (b *bench) byPtrace(threads int) (*contender, error) {
	t, err := startTarget(b.program("target"), fmt.Sprint(threads))
	if err != nil {
		return nil, err
	}
	m, err := openMonitor()
	if err != nil {
		t.end()
		return nil, err
	}
	end := func() {
		t.end()
		b.note(m.close())
	}
	if err := m.count(t.pid(), t.work); err != nil {
		end()
		return nil, err
	}
	return &contender{name: "ptrace", hits: 4000, target: t, end: end}, nil
}

// byInt3 is the reference for that.
func (b *bench) byInt3(threads int) (*contender, error) {
	t, err := startTarget(b.program("target"), fmt.Sprint(threads))
	if err != nil {
		return nil, err
	}
	code, err := text(b.program("target"), t.work)
	if err != nil {
		t.end()
		return nil, err
	}
	inst, err := x86asm.Decode(code.Code, 64)
	if err != nil {
		t.end()
		return nil, err
	}
	cmd := exec.Command(b.program("int3"), fmt.Sprint(t.pid()), fmt.Sprintf("%#x", t.work), fmt.Sprint(inst.Len), fmt.Sprintf("%#x", t.page))
	cmd.Stderr = os.Stderr
	return beside(&contender{name: "C, out-of-line INT3", hits: 4000, target: t}, cmd, "ready")
}

// beside adds a process that is ready when it says a line that begins so.
func beside(c *contender, cmd *exec.Cmd, ready string) (*contender, error) {
	c.end = c.target.end
	p, err := launch(cmd)
	if err != nil {
		c.end()
		return nil, err
	}
	c.end = func() {
		c.target.end()
		p.end()
	}
	for {
		switch s, err := p.line(); {
		case err != nil:
			c.end()
			return nil, err
		case strings.HasPrefix(s, ready):
			go func() { _, _ = io.Copy(io.Discard, p.out) }()
			return c, nil
		}
	}
}

// byRendezvous holds threads by package rendezvous.
func (b *bench) byRendezvous() (*contender, error) {
	t, err := startTarget(b.program("target"))
	if err != nil {
		return nil, err
	}
	site, server, err := meet(b.program("target"), t)
	if err != nil {
		t.end()
		return nil, err
	}
	return &contender{name: "rendezvous", hits: 8000, target: t, end: func() {
		t.end()
		server.Close()
		site.Forget()
	}}, nil
}

// meet makes a rendezvous at work that counts hits.
func meet(path string, t *target) (*rendezvous.Site, *rendezvous.Server, error) {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", t.pid()), os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	defer memory.Close()
	fn, err := text(path, t.work)
	if err != nil {
		return nil, nil, err
	}
	plan, err := rendezvous.Survey(fn, t.work)
	if err != nil {
		return nil, nil, err
	}
	const aside = 0x10000 // from the page of the target
	site, err := rendezvous.Install(willing{memory, t}, t.work, rendezvous.Config{
		Vacancies: func(uint64) []uint64 { return []uint64{t.page + aside} }, Patience: time.Second,
	})
	if err != nil {
		return nil, nil, err
	}
	if err := site.Prepare(plan); err != nil {
		return nil, nil, err
	}
	if err := site.Plant(t.work); err != nil {
		return nil, nil, err
	}
	var counter uint64
	server, err := rendezvous.Serve(site, 0, func(h *rendezvous.Hit) { counter += h.Regs[rendezvous.RDI] })
	return site, server, err
}

// willing is a target that waits for its input, and makes system calls when it is
// told to: nobody has to trace it.
type willing struct {
	*os.File
	t *target
}

func (w willing) PID() int { return w.t.pid() }

func (w willing) Call(number uint64, args ...uint64) (int64, error) {
	var a [6]int64
	for i, v := range args {
		a[i] = int64(v)
	}
	return w.t.ask("call %d %d %d %d %d %d %d", number, a[0], a[1], a[2], a[3], a[4], a[5])
}

// byFutex is the reference for that.
func (b *bench) byFutex() (*contender, error) {
	t, err := startTarget(b.program("rendezvous"))
	if err != nil {
		return nil, err
	}
	return &contender{name: "C, rendezvous", hits: 8000, target: t, end: t.end}, nil
}

// byGDB are breakpoints of gdb: commands says what follows the address in its
// script.
func (b *bench) byGDB(name, commands string) (*contender, error) {
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		return b.without(name, err), nil
	}
	t, err := startTarget(b.program("target"))
	if err != nil {
		return nil, err
	}
	script := filepath.Join(b.dir, fmt.Sprintf("gdb-%d", t.pid()))
	content := fmt.Sprintf("set pagination off\nset $sum = 0\nbreak *%#x %s\nshell echo ready\ncontinue\n", t.work, commands)
	if err := os.WriteFile(script, []byte(content), 0o600); err != nil {
		t.end()
		return nil, err
	}
	cmd := exec.Command(gdb, "-nx", "-q", "-batch", "-ex", "set debuginfod enabled off", "-p", fmt.Sprint(t.pid()), "-x", script)
	c, err := beside(&contender{name: name, hits: 200, target: t}, cmd, "ready")
	return c, err
}
