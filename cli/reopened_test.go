package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mirador/omis/host/proc"
	"mirador/omis/linux/subject"
)

// opener is a process of testdata/opens.c, with two builds of the library that it opens.
type opener struct {
	tally
	library, other string
}

func compileOpener(t *testing.T) (start func() opener) {
	t.Helper()
	dir := t.TempDir()
	build := func(out string, args ...string) string {
		path := filepath.Join(dir, out)
		if out, err := exec.Command("gcc", append(args, "-O1", "-g", "-o", path)...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
		return path
	}
	program := build("opens", "testdata/opens.c", "-rdynamic", "-ldl")
	library := build("opened.so", "testdata/opened.c", "-shared", "-fPIC", "-DSIZE=10")
	other := build("other.so", "testdata/opened.c", "-shared", "-fPIC", "-DSIZE=5000", "-falign-functions=256")
	return func() opener {
		c := opener{tally{t, subject.Start(t, exec.Command(program))}, library, other}
		c.Line() // it is ready
		return c
	}
}

// TestLibraryOpenedAgain checks probes in a library that a program closes and opens again, at the same address and at
// another one, and in a library with other code, in each placement.
func TestLibraryOpenedAgain(t *testing.T) {
	inEachPlacement(t, func(t *testing.T, s *served, placement string) {
		start := compileOpener(t)
		c := start()
		c.says("o " + c.library)
		s.must(t, "", "attach", "--app", "opens", strconv.Itoa(c.PID))
		before := c.says("c")
		s.mir(t, "opens", `<instrreq activated="true" flush="true"><codeRegion from="opened.so:work"/><metric name="COUNT"/></instrreq>`)
		s.mir(t, "opens", `<instrreq activated="true" flush="true"><codeRegion from="opened.so:work"/><metric name="WC_TIME"/><metric name="COUNT"/></instrreq>`)
		check := func(calls int) {
			t.Helper()
			for _, id := range []string{"probe-1", "probe-2"} {
				if got := s.counts(t, id); got != calls-before {
					t.Errorf("%s counted %d, want %d: %s", id, got, calls-before, s.probe(t, id).Notice)
				}
			}
		}
		notice := func(want string) {
			t.Helper()
			if p := s.probe(t, "probe-1"); p.State != "active" || p.Gone || strings.Contains(p.Notice, "was closed") != (want != "") || !strings.Contains(p.Notice, want) {
				t.Errorf("the probe is %s with %q", p.State, p.Notice)
			}
		}
		check(c.says("c"))
		for range 3 { // at the same address
			c.says("x")
			notice("opened.so was closed in p_1")
			c.says("o " + c.library)
			check(c.says("c"))
			notice("")
		}
		c.says("x")
		c.says("m")
		c.says("o " + c.library) // at another address
		check(c.says("c"))
		c.says("x")
		if err := os.Rename(c.other, c.library); err != nil {
			t.Fatal(err)
		}
		c.says("o " + c.library)
		check(c.says("c"))
		probed := textOf(t, c.PID, c.library)
		s.mir(t, "opens", `<ctrlreq action="REMOVE"><probe id="probe-1"/><probe id="probe-2"/></ctrlreq>`)
		plain := start()
		plain.says("o " + c.library)
		if now := textOf(t, c.PID, c.library); !bytes.Equal(now, textOf(t, plain.PID, c.library)) || placement != "kernel" && bytes.Equal(now, probed) {
			t.Error("the code of the library is not what it was")
		}
		s.mir(t, "opens", `<instrreq activated="true" flush="true"><codeRegion from="opened.so:work"/><metric name="COUNT"/></instrreq>`)
		c.says("x")
		s.mir(t, "opens", `<ctrlreq action="REMOVE"><probe id="probe-3"/></ctrlreq>`) // in a library that stays closed
		c.says("o " + c.library)
		c.says("c")
	})
}

// TestGatewayKilledWhileLibraryIsOpened kills the gateway while it holds a process that opens or closes a library. The
// process goes on, and the next gateway measures, or says why it does not.
func TestGatewayKilledWhileLibraryIsOpened(t *testing.T) {
	s := startServe(t, os.Geteuid())
	c := compileOpener(t)()
	begun := c.says("o " + c.library)
	s.must(t, "", "attach", "--app", "opens", strconv.Itoa(c.PID))
	plain := textOf(t, c.PID, c.library)
	s.mir(t, "opens", `<instrreq activated="true" flush="true"><codeRegion from="opened.so:work"/><metric name="COUNT"/></instrreq>`)
	c.says("c")
	heldAndKilled := func(line string) (calls int) {
		t.Helper()
		if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c.Tell("%s", line)
		eventually(t, "the process is held", func() bool {
			state, err := proc.ThreadState(c.PID, c.PID)
			return err == nil && state == "t"
		})
		s.kill(t)
		calls, err := strconv.Atoi(c.Line())
		if err != nil {
			t.Fatal(err)
		}
		return calls
	}
	s.kill(t)
	calls := c.says("c")
	s.await(t, s.begin(t))
	if got, p := s.counts(t, "probe-1"), s.probe(t, "probe-1"); got != calls-begun || !strings.Contains(p.Notice, "while no gateway was there: p_1 may have closed opened.so") {
		t.Errorf("counted %d of %d, with %q", got, calls-begun, p.Notice)
	}
	s.mir(t, "opens", `<ctrlreq action="RESET"><probe id="probe-1"/></ctrlreq>`)
	if p := s.probe(t, "probe-1"); p.Notice != "" {
		t.Errorf("after RESET the probe says %q", p.Notice)
	}
	c.says("c")
	c.says("x")
	heldAndKilled("o " + c.library)
	calls = c.says("c")
	s.await(t, s.begin(t))
	before := s.counts(t, "probe-1")
	if calls = c.says("c") - calls; s.counts(t, "probe-1") != before+calls {
		t.Errorf("counted %d of %d", s.counts(t, "probe-1")-before, calls)
	}
	if p := s.probe(t, "probe-1"); !strings.Contains(p.Notice, "while no gateway was there") {
		t.Errorf("the probe says %q", p.Notice)
	}
	heldAndKilled("x")
	s.await(t, s.begin(t))
	if p := s.probe(t, "probe-1"); p.State != "failed" {
		t.Errorf("the probe is %s: %s", p.State, p.Failure)
	}
	begun = c.says("o " + c.library)
	s.mir(t, "opens", `<instrreq activated="true" flush="true"><codeRegion from="opened.so:work"/><metric name="COUNT"/></instrreq>`)
	if calls, got := c.says("c"), s.counts(t, "probe-2"); got != calls-begun {
		t.Errorf("counted %d of %d", got, calls-begun)
	}
	s.must(t, "", "release", "opens")
	if !bytes.Equal(plain, textOf(t, c.PID, c.library)) {
		t.Error("the code of the library is not what it was")
	}
	c.says("c")
}
