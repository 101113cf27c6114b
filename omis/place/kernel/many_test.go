//go:build linux && amd64

package kernel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mirador/omis/linux/subject"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/kernel"
)

// many is the number of functions that one request measures.
const many = 10_000

// buildMany compiles a target with that many additional functions, each of which counts its calls, and the
// command "all FROM TO", which calls some of them.
func buildMany(t *testing.T, flags ...string) string {
	t.Helper()
	var code strings.Builder
	fmt.Fprintf(&code, ".data\n.globl many_calls\n.type many_calls, @object\nmany_calls: .zero %d\n.text\n", 8*many)
	for i := range many {
		fmt.Fprintf(&code, ".globl many_%d\n.type many_%[1]d, @function\nmany_%[1]d: push %%rbp\nincq many_calls+%d(%%rip)\npop %%rbp\nret\n.size many_%[1]d, .-many_%[1]d\n", i, 8*i)
	}
	code.WriteString(".data\n.globl many_all\nmany_all:\n")
	for i := range many {
		fmt.Fprintf(&code, ".quad many_%d\n", i)
	}
	code.WriteString(".section .note.GNU-stack,\"\",@progbits\n")
	path := filepath.Join(t.TempDir(), "many.s")
	if err := os.WriteFile(path, []byte(code.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return subject.Compile(t, "many", append(flags, "-O1", "-no-pie", "testdata/many.c", path)...)
}

// One request measures ten thousand functions; each of their calls counts.
func TestManyFunctions(t *testing.T) {
	g := rig.Start(t, buildMany(t))
	before := g.Code(g.Func["many_0"], int(g.Func[fmt.Sprint("many_", many-1)]-g.Func["many_0"]))
	r := newRig(t, kernel.Name, g)
	for i := range many {
		r.Ask(": pa_counter_create()")
		r.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_%d],1)", g.Func[fmt.Sprint("many_", i)], i+1)
	}
	began := time.Now()
	r.Ask(": csr_enable([])")
	t.Log("enabled in", time.Since(began))
	if where := r.Where(); where != kernel.Name {
		t.Fatal(where)
	}
	for _, to := range []int{many, many / 2, many / 4} {
		g.Do("all 0 %d", to)
	}
	began = time.Now()
	results := r.Ask(": pa_counter_read([])")[1]
	t.Log("read in", time.Since(began))
	seen := 0
	for _, result := range results {
		n, _ := result.Values[1].List[2].Int64()
		for _, token := range result.Objects {
			var counter int
			fmt.Sscanf(string(token), "pa_c_%d", &counter)
			want := int64(1)
			if counter <= many/2 {
				want++
			}
			if counter <= many/4 {
				want++
			}
			if n != want {
				t.Fatalf("%s is %d, want %d", token, n, want)
			}
			seen++
		}
	}
	if seen != many {
		t.Errorf("%d counters were read", seen)
	}
	r.Ask(": csr_delete([c_5000])")
	g.Do("all 0 %d", many)
	if got := r.Ask(": pa_counter_read([pa_c_4999,pa_c_5000])"); got[1][0].Values[1].List[2].N != 3 || got[1][1].Values[1].List[2].N != 2 {
		t.Errorf("after one of them was deleted: %v", got)
	}
	began = time.Now()
	r.Ask(": csr_delete([])")
	t.Log("deleted in", time.Since(began))
	r.CSRs = nil
	if after := g.Code(g.Func["many_0"], len(before)); string(after) != string(before) {
		t.Error("the code is not what it was")
	}
	r.Ask(": pa_counter_delete([])")
}
