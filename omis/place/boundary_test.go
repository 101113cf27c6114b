//go:build linux && amd64

package place_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mirador/omis/monitor/rig"
	"mirador/omis/place/inline"
	"mirador/omis/place/kernel"
)

// TestMiddleOfInstructions checks that no placement accepts an address inside an instruction, because a
// probe there would change the instruction, and that the program continues unchanged.
func TestMiddleOfInstructions(t *testing.T) {
	program := rig.Scenes(t)
	for _, placement := range []string{"trap", kernel.Name, inline.Name} {
		t.Run(placement, func(t *testing.T) {
			r := newRig(t, placement, rig.Start(t, program))
			begin, size := r.Target.Func["work"], r.Target.Size["work"]
			starts := starts(t, program, "work")
			r.Ask(": pa_counter_create()")
			middles := 0
			for at := range size {
				if starts[at] {
					continue
				}
				middles++
				csr := r.Ask("thread_reached_addr([],%#x) : pa_counter_add([pa_c_1],1)", begin+uint64(at))[0][0].Values[0].Token()
				reply, err := r.Tool.Request(t.Context(), fmt.Sprintf(": csr_enable([%s])", csr), nil, 0)
				if err != nil || reply.Err() == nil || !strings.Contains(reply.Err().Error(), "in the middle") {
					t.Errorf("+%d: %v, %v", at, reply, err)
				}
			}
			if middles == 0 {
				t.Error("the function has no instruction with more than one byte")
			}
			r.Define("thread_reached_addr([],%#x) : pa_counter_add([pa_c_1],1)", begin)
			r.Enable()
			r.Target.Do("call 10")
			if n := r.Ask(": pa_counter_read([pa_c_1])")[1][0].Values[1].List; len(n) != 3 || n[2].N != 10 {
				t.Errorf("counted %v", n)
			}
		})
	}
}

// starts returns the offsets of the instructions in a function, according to objdump.
func starts(t *testing.T, program, function string) map[int]bool {
	t.Helper()
	out, err := exec.Command("objdump", "-d", "--no-show-raw-insn", "--disassemble="+function, program).Output()
	if err != nil {
		t.Fatal(err)
	}
	found, first := make(map[int]bool), uint64(0)
	for _, m := range regexp.MustCompile(`(?m)^ +([0-9a-f]+):\t`).FindAllStringSubmatch(string(out), -1) {
		at, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			first = at
		}
		found[int(at-first)] = true
	}
	return found
}
