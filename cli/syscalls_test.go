package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mirador/examples/targets"
)

// TestSyscalls compares the table of system calls with that of strace -c, which traces the program at the same time.
// What strace measures around each call includes what Mirador measures.
func TestSyscalls(t *testing.T) {
	a := startActivity(t)
	theirs := startStrace(t, a.p.PID, "-c", "-w", "-U", "time-total,calls,name")
	ours := a.startMeasuring(t, "syscalls", "activity", "--for", "5m", "--json")
	a.do("files", 100)
	a.do("memory", 50)
	a.do("locks", 20)
	a.do("network", 10)
	var list []madeCall
	if err := json.Unmarshal(ours(), &list); err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]madeCall)
	for i, m := range list {
		byName[m.Call] = m
		if i > 0 && m.Seconds > list[i-1].Seconds {
			t.Errorf("%s took longer than the call before it: %+v", m.Call, list)
		}
	}
	table := theirs()
	compared := 0
	for _, row := range regexp.MustCompile(`(?m)^ *([0-9.]+) +(\d+) +([a-z0-9_]+)$`).FindAllStringSubmatch(table, -1) {
		seconds, _ := strconv.ParseFloat(row[1], 64)
		calls, _ := strconv.ParseInt(row[2], 10, 64)
		m := byName[row[3]]
		if row[3] == "total" || row[3] == "read" || row[3] == "restart_syscall" { // the program was in read when either began
			continue
		}
		compared++
		if m.Calls != calls || m.Seconds > seconds+1e-6 {
			t.Errorf("%+v, strace has %s", m, row[0])
		}
	}
	// strace -c has no call that does not return, such as exit.
	if compared < 8 || len(list) > compared+2 || byName["clock_nanosleep"].Seconds < 0.04 || byName["read"].Calls < 3 {
		t.Errorf("%+v, strace has\n%s", list, table)
	}

	c := targets.Start(t, "mmul", "--pace", "1000", "1", "16")
	a.must(t, "", "attach", "--app", "mmul", strconv.Itoa(c.PID))
	text := a.must(t, "", "syscalls", "mmul", "--for", "200ms", "--region", "work/loop1/body", "--sort", "calls")
	if !regexp.MustCompile(`^TIME % +SECONDS +µS/CALL +CALLS +CALL\n100.00 +[\d.]+ +[\d.]+ +\d+ +clock_nanosleep\n100.00 .* total\n$`).MatchString(text) {
		t.Error(text)
	}
}

// startMeasuring starts a command that measures, and waits for its probe. The returned function interrupts the command
// and returns its output.
func (s *served) startMeasuring(t *testing.T, args ...string) func() []byte {
	t.Helper()
	cmd := exec.Command(miradorPath, append(args, "--gateway", "unix:"+s.socket)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the probe measures", func() bool { return strings.Contains(s.must(t, "", "probe", "list"), "  active  ") })
	return func() []byte {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, errs.String())
		}
		return out.Bytes()
	}
}

// TestMadeCalls checks that the row for other calls has what the rows of single calls lack, and that rows of calls that
// were not made are left out.
func TestMadeCalls(t *testing.T) {
	var values []probeValue
	for _, v := range []string{"SYSCALL_COUNT 10", "SYSCALL_TIME 4000", "SYSCALL_COUNT:read 6", "SYSCALL_TIME:read 1000", "SYSCALL_COUNT:brk 0", "SYSCALL_TIME:brk 0",
		"SYSCALL_COUNT:poll 1", "SYSCALL_TIME:poll ", "SYSCALL_COUNT:read 1", "SYSCALL_TIME:read 500"} {
		metric, text, _ := strings.Cut(v, " ")
		values = append(values, probeValue{Metric: metric, Value: json.Number(text)})
	}
	list, err := madeCalls(values)
	if got := fmt.Sprint(list); err != nil || got != "[{(others) 2 2.5} {read 7 1.5} {poll 1 0}]" {
		t.Errorf("%s, %v", got, err)
	}
}
