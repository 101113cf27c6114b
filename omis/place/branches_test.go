//go:build linux && amd64

package place_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"mirador/omis/linux/subject"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
)

// conditions are the suffixes of conditional jumps, in the order of the numbers of their conditions.
var conditions = strings.Fields("o no b ae e ne be a s ns p np l ge le g")

// TestBranches counts how often each kind of conditional jump is taken and not taken. The program counts the same.
func TestBranches(t *testing.T) {
	program := subject.Compile(t, "branches", filepath.Join("testdata", "branches.c"), filepath.Join("testdata", "branches.s"))
	for _, placement := range []string{"trap", kernel.Name, inline.Name} {
		t.Run(placement, func(t *testing.T) {
			const calls, jump = 100, 6 // bytes behind the beginning
			r := newRig(t, placement, rig.Start(t, program))
			for i, cc := range conditions {
				r.Ask(": pa_counter_create() pa_counter_create() pa_counter_create()")
				at := r.Target.Func["branch_"+cc] + jump
				r.Define("pa_thread_reached_addr_if([],%#x,%d) : pa_counter_add([pa_c_%d],1)", at, i, 3*i+1)
				r.Define("pa_thread_reached_addr_if([],%#x,%d) : pa_counter_add([pa_c_%d],1)", at, i^1, 3*i+2)
				r.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_%d],1)", at, 3*i+3)
			}
			r.Enable()
			r.RunsIn(placement)
			taken := strings.Fields(r.Target.Do("go"))
			for i, cc := range conditions {
				var n int64
				fmt.Sscan(taken[i], &n)
				for k, want := range []int64{n, calls - n, calls} {
					if got := counted(r, 3*i+k+1); got != want {
						t.Errorf("j%s, number %d: counted %d, want %d", cc, k, got, want)
					}
				}
			}
			r.Ask(": csr_delete([%s])", strings.Join(r.CSRs, ","))
			r.CSRs = nil
			if after := strings.Fields(r.Target.Do("go")); strings.Join(after, " ") != strings.Join(taken, " ") {
				t.Errorf("the program counts %q when the requests are deleted, and %q before", after, taken)
			}
		})
	}
}

// counted returns the sum of a counter.
func counted(r *rig.Monitor, counter int) (sum int64) {
	list := r.Ask(": pa_counter_read([pa_c_%d])", counter)[1][0].Values[1].List
	for i := 2; i < len(list); i += 3 {
		n, _ := list[i].Int64()
		sum += n
	}
	return sum
}
