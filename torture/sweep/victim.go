//go:build linux && amd64

package sweep

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mirador/examples/child"
)

//go:embed testdata/shapes.c
var harness []byte

// patience limits the time for an answer of a victim.
const patience = 2 * time.Minute

// builder builds victims in a folder.
type builder struct {
	dir    string
	object string // the compiled harness
}

func newBuilder(dir string) (*builder, error) {
	b := &builder{dir: dir, object: filepath.Join(dir, "shapes.o")}
	source := filepath.Join(dir, "shapes.c")
	if err := os.WriteFile(source, harness, 0o600); err != nil {
		return nil, err
	}
	return b, gcc("-O2", "-c", "-o", b.object, source)
}

func gcc(args ...string) error {
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%.2000s", err, out)
	}
	return nil
}

// victim is a running program of generated functions.
type victim struct {
	generated
	*child.Child
	addrs []uint64 // addresses of its places
	calm  []string // results of its functions without probes
	text  []byte   // its code without probes
}

// start builds a program and starts it.
func (b *builder) start(p generated, name string) (*victim, error) {
	file := filepath.Join(b.dir, name)
	if err := os.WriteFile(file+".s", []byte(p.source), 0o600); err != nil {
		return nil, err
	}
	if err := gcc("-pthread", "-o", file, b.object, file+".s"); err != nil {
		return nil, err
	}
	running, err := child.Start(exec.Command(file))
	if err != nil {
		return nil, err
	}
	v := &victim{generated: p, Child: running}
	if err := v.begin(); err != nil {
		v.Kill()
		return nil, err
	}
	return v, nil
}

// begin reads the addresses, and the results without probes.
func (v *victim) begin() error {
	line, err := v.Line(patience)
	if err != nil {
		return err
	}
	for _, field := range strings.Fields(line) {
		addr, err := strconv.ParseUint(field, 16, 64)
		if err != nil {
			return err
		}
		v.addrs = append(v.addrs, addr)
	}
	if len(v.addrs) != len(v.places) {
		return fmt.Errorf("the program has %d instructions, want %d", len(v.addrs), len(v.places))
	}
	if v.calm, err = v.round(); err != nil {
		return err
	}
	if again, err := v.round(); err != nil || different(again, v.calm) >= 0 {
		return fmt.Errorf("without probes a function does not return the same twice (%w)", err)
	}
	v.text, err = v.code()
	return err
}

// code reads the code that contains all places.
func (v *victim) code() ([]byte, error) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", v.PID))
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	low, high := v.addrs[0], v.addrs[0]
	for _, a := range v.addrs {
		low, high = min(low, a), max(high, a+1)
	}
	text := make([]byte, high-low)
	_, err = memory.ReadAt(text, int64(low))
	return text, err
}

// errThread reports that the second thread got a wrong result.
type errThread struct{ shape int }

func (e *errThread) Error() string {
	return fmt.Sprintf("shape_%d returned a wrong result in the second thread", e.shape)
}

// tell sends a command and returns the answer: a field for each function, then the function for
// which the second thread got a wrong result, or -1.
func (v *victim) tell(command string) ([]string, error) {
	line, err := v.Ask(patience, "%s", command)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return nil, fmt.Errorf("the program answers %q", line)
	}
	last := len(fields) - 1
	if n, err := strconv.Atoi(fields[last]); err != nil || n >= 0 {
		return nil, errors.Join(err, &errThread{n})
	}
	return fields[:last], nil
}

// round calls every function, and returns a hash of each result.
func (v *victim) round() ([]string, error) { return v.tell("go") }

// different returns the first function whose results differ, -1 if there is none.
func different(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}
