//go:build linux && amd64

package inline_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"mirador/omis/linux/subject"
	"mirador/omis/monitor/rig"
	"mirador/omis/node"
	"mirador/omis/place/inline"
	"mirador/omis/program"
)

// scenes is a program whose functions are called a known number of times.
func scenes(t testing.TB, flags ...string) string {
	t.Helper()
	object := subject.Compile(t, "scenes.o", append([]string{"-c", "../../monitor/rig/testdata/target.c"}, flags...)...)
	return subject.Compile(t, "scenes", append([]string{object, "../../monitor/rig/testdata/thrower.cc"}, flags...)...)
}

// do makes the program do something.
func (g *observed) do(format string, args ...any) {
	g.t.Helper()
	g.Tell(format, args...)
	if line := g.Line(); !strings.HasPrefix(line, "done") {
		g.t.Fatal(line)
	}
}

// returns returns the addresses of a function's returns.
func (g *observed) returns(name string) (list []uint64) {
	g.t.Helper()
	for at, code := 0, g.code(g.fun[name], g.size[name]); at < len(code); {
		inst, err := x86asm.Decode(code[at:], 64)
		switch {
		case err != nil:
			g.t.Fatal(err)
		case inst.Op == 0:
			inst.Len = 4 // endbr64
		case inst.Op == x86asm.RET:
			list = append(list, g.fun[name]+uint64(at))
		}
		at += inst.Len
	}
	return list
}

func (g *observed) at(addr uint64) node.Watch {
	return node.Watch{Event: node.EventReachedAddr, Proc: g.ID, Addr: addr}
}

// timing counts and times a function. If a return has no room for a jump, it only counts.
func (g *observed) timing(p *inline.Placer, function string) (sums, intervals program.Store) {
	g.t.Helper()
	sums, intervals = newStore(g.t, p, g.ID, program.StoreSums), newStore(g.t, p, g.ID, program.StoreIntervals)
	stop := program.Program{{Do: program.OpStop, Store: intervals}}
	var ends []program.Placing
	for _, addr := range g.returns(function) {
		ends = append(ends, program.Placing{Watch: g.at(addr), Program: stop})
	}
	steps := []program.Op{{Do: program.OpAdd, Value: 1, Store: sums}}
	if _, errs := p.Judge(ends); errors.Join(errs...) == nil {
		steps = append(steps, program.Op{Do: program.OpStart, Store: intervals})
		for _, end := range ends {
			place(g.t, p, end.Watch, stop...)
		}
	} else {
		g.t.Log(errors.Join(errs...))
		intervals = nil
	}
	place(g.t, p, g.at(g.fun[function]), steps...)
	return sums, intervals
}

// Each call is counted, by each of many threads, for different options of the compiler.
func TestCompiled(t *testing.T) {
	for _, flags := range []string{"-O0", "-O1", "-O2", "-O3", "-Os", "-O2 -no-pie", "-O2 -static", "-O2 -fcf-protection=full", "-O2 -fno-plt -flto", "-O0 -fcf-protection=full -static"} {
		t.Run(flags, func(t *testing.T) {
			g := observe(t, scenes(t, strings.Fields(flags)...))
			sums, intervals := g.timing(newPlacer(t, g.node), "work")
			g.do("together 64 500")
			g.do("call 500")
			if intervals == nil {
				intervals = sums
			}
			counted, timed := rows(t, sums), rows(t, intervals)
			if len(counted) != 65 || len(timed) != 65 || sums.Lost()+intervals.Lost() > 0 {
				t.Fatalf("%d and %d rows, lost %d and %d: %+v", len(counted), len(timed), sums.Lost(), intervals.Lost(), odd(counted))
			}
			for i := range counted {
				if counted[i].Value != 500 || timed[i].Count+timed[i].Value != 500 {
					t.Errorf("row %+v, %+v", counted[i], timed[i])
				}
			}
		})
	}
}

// odd returns the rows that are unlike the others in TestCompiled.
func odd(list []program.Row) []program.Row {
	return slices.DeleteFunc(list, func(r program.Row) bool { return r.Value == 500 })
}

// Threads begin and end all the time, and none is lost. Code can also be in a library.
func TestThreadChurn(t *testing.T) {
	g := observe(t, scenes(t))
	p := newPlacer(t, g.node)
	sums, _ := g.timing(p, "work")
	library := newStore(t, p, g.ID, program.StoreSums)
	place(t, p, g.at(g.fun["pthread_create"]), program.Op{Do: program.OpAdd, Value: 1, Store: library})
	const threads = 10_000
	const again = 100 // numbers that other tests may have the kernel use again
	before := forks(t)
	g.do("onebyone %d 1", threads)
	g.do("call 1")
	var sum, crowd int64
	list := rows(t, sums)
	for _, r := range list {
		sum += r.Value
		if r.TID == 0 { // threads that ended long ago, or that found no slot before the monitor freed some
			crowd = r.Value - 1
		}
	}
	if sum != threads+1 || sums.Lost() != 0 {
		t.Errorf("in all %d calls, lost %d", sum, sums.Lost())
	}
	if rows := int64(len(list)) + crowd; rows > threads+1 || rows < threads+1-again && forks(t)-before < numbers(t) {
		t.Errorf("%d rows, %d calls told together", len(list), crowd)
	}
	const few = 100
	rig.Until(t, "the slots of ended threads are free", func() bool { return inline.Taken(sums) < few })
	if n, most := len(rows(t, sums)), program.RowsOfEnded(3)*5/4+few; n > most {
		t.Errorf("%d rows, want no more than %d", n, most)
	}
	if r := rows(t, library); len(r) != 1 || r[0].Value != threads {
		t.Errorf("pthread_create: %+v", r)
	}
}

// forks returns how many threads and processes this machine has started.
func forks(t *testing.T) (n int) {
	t.Helper()
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), "\nprocesses ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// numbers returns after how many new threads a number may be used again: all numbers, less those that are
// in use for long.
func numbers(t *testing.T) (n int) {
	t.Helper()
	most, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err == nil {
		_, err = fmt.Sscan(string(most), &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n - n/4
}

// After code is removed, the original code is there.
func TestCodeIsPutRight(t *testing.T) {
	g := observe(t, scenes(t))
	p := newPlacer(t, g.node)
	s := newStore(t, p, g.ID, program.StoreSums)
	before := g.code(g.fun["work"], g.size["work"])
	var list []program.Placing
	for _, addr := range append(g.returns("work"), g.fun["work"], g.fun["work"]) {
		list = append(list, program.Placing{Watch: g.at(addr), Program: program.Program{{Do: program.OpAdd, Value: 1, Store: s}}})
	}
	placed, errs := p.Place(list)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, pl := range placed {
		pl.SetActive(true)
	}
	if !placed[1].Covers(g.fun["work"]) || string(before) == string(g.code(g.fun["work"], len(before))) {
		t.Error("nothing stands there")
	}
	g.do("call 10")
	if err := p.Remove(placed); err != nil {
		t.Fatal(err)
	}
	if string(before) != string(g.code(g.fun["work"], len(before))) {
		t.Error("the code is not what it was")
	}
	g.do("call 10")
	if r := rows(t, s); len(r) != 1 || r[0].Value != int64(10*len(list)) {
		t.Errorf("rows %+v", r)
	}
}

func TestRefusals(t *testing.T) {
	g := observe(t, scenes(t))
	p := newPlacer(t, g.node)
	for why, w := range map[string]node.Watch{
		"not at other events": {Event: node.EventThreadCreated, Proc: g.ID},
		"16 threads":          {Event: node.EventReachedAddr, Proc: g.ID, Addr: g.fun["work"], Threads: make([]int, 17)},
		"no code can be put":  g.at(g.fun["work"] + 1),
	} {
		_, errs := p.Judge([]program.Placing{{Watch: w, Program: program.Program{{Do: program.OpAdd, Value: 1}}}})
		var refusal *program.Refusal
		if !errors.As(errs[0], &refusal) || !strings.Contains(refusal.Why, why) {
			t.Errorf("%v, want a refusal because %q", errs[0], why)
		}
	}
	former := g.ID
	former.Start++
	if _, errs := p.Judge([]program.Placing{{Watch: node.Watch{Event: node.EventReachedAddr, Proc: former}}}); errs[0] == nil || !strings.Contains(fmt.Sprint(errs[0]), "has ended") {
		t.Errorf("another process: %v", errs[0])
	}
}
