//go:build linux && amd64

package kernel_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mirador/omis/monitor/rig"
	"mirador/omis/node"
	"mirador/omis/place/kernel"
	"mirador/omis/program"
)

// Sums of values that events have are adopted, and continue meanwhile.
func TestLoadedSumsAreTakenOver(t *testing.T) {
	g := rig.Start(t, rig.Caller(t))
	a := assign(t, g)
	a.Sum = &loadedSum{node.Watch{Event: node.EventSysCallEnded, Name: "recvfrom"}, program.Load{From: program.FromResult, Bytes: 8, Signed: true}}
	takeSumOver(t, a, func() { g.Do("amounts 10") }, 45) // 55 bytes, and ten calls that fail
}

func TestLoadedArgumentsAreTakenOver(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	a := assign(t, g)
	a.Sum = &loadedSum{node.Watch{Event: node.EventReachedAddr, Addr: g.Func["told"]}, program.ArgumentAt(2 + 6)}
	takeSumOver(t, a, func() { g.Do("tells 9") }, -45)
}

// takeSumOver kills monitors, and makes the target do something that adds an amount.
func takeSumOver(t *testing.T, a assignment, do func(), amount int) {
	t.Helper()
	k := placedKeeper(t, a)
	do()
	for i := range 3 {
		k.want("rows", fmt.Sprint((1+3*i)*amount, 0, 0))
		k.kill()
		do()
		k = successor(t, a)
		do()
		k.adopt()
		do()
	}
	k.close()
}

// A program that loads something else is not adopted.
func TestOtherLoadsAreNotTakenOver(t *testing.T) {
	g := rig.Start(t, rig.Caller(t))
	a := assign(t, g)
	a.Sum = &loadedSum{node.Watch{Event: node.EventSysCallStarted, Name: "sendto"}, program.Load{From: program.FromArgument, Arg: 2, Bytes: 8}}
	placedKeeper(t, a).kill()
	a.Sum.Load.Arg = 1
	k := successor(t, a)
	k.want("place", "placed")
	k.want("settle", "1 orphans")
	k.close()
}

// straceSum returns the sum of the results of all calls of a name, by strace.
func straceSum(t *testing.T, call, program string, lines ...string) (sum int64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-o", file, "-e", "trace="+call, program)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("strace: %v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)\) += (-?\d+)(?: |$)`).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// The number of written bytes is the one that strace reports.
func TestLoadsAgreeWithStrace(t *testing.T) {
	program := rig.Caller(t)
	lines := []string{"amounts 300", "crowd 5 20", "late 1", "fork 1"}
	r := newRig(t, kernel.Name, rig.Start(t, program))
	for i, call := range []string{"sendto", "recvfrom", "readv", "write"} {
		r.Ask(": pa_counter_create()")
		action := "pa_counter_add" // strace reports -1 for failed calls, too
		if call == "write" {
			action = "pa_counter_add_amount"
		}
		r.Define("thread_has_ended_sys_call([],%q) : %s([pa_c_%d],$par1)", call, action, i+1)
	}
	r.Enable()
	r.RunsIn(kernel.Name)
	ready := int64(len("ready 0x1\n")) // written before
	for _, line := range lines {
		r.Target.Do("%s", line)
	}
	for i, call := range []string{"sendto", "recvfrom", "readv", "write"} {
		want := straceSum(t, call, program, lines...)
		if call == "write" {
			want -= ready
		}
		values := r.Ask(": pa_counter_sum([pa_c_%d],2)", i+1)[1][0].Values[1].List
		if got, _ := values[2].Int64(); got != want || got == 0 {
			t.Errorf("%s: %d, strace tells %d", call, got, want)
		}
	}
}
