package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/engine"
	"mirador/omis/linux"
	"mirador/omis/linux/subject"
	"mirador/omis/monitor"
	"mirador/omis/node"
)

// live is a tool with its own monitor of this machine. It tests the services on real processes.
type live struct {
	engine *engine.Engine
	tool   omis.Tool
}

func startLive(t *testing.T) *live {
	t.Helper()
	m, err := monitor.Open(monitor.Config{Linux: linux.Config{Name: "here", Warden: []string{miradorPath, wardenCommand}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return &live{m.Engine, m.Engine.Tool("live")}
}

// reply returns the reply to an unconditional request.
func (l *live) reply(t *testing.T, format string, args ...any) omis.Reply {
	t.Helper()
	reply, err := l.tool.Request(t.Context(), ": "+fmt.Sprintf(format, args...), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// ask sends one action that must succeed, and returns its result for the first object.
func (l *live) ask(t *testing.T, format string, args ...any) []omis.Value {
	t.Helper()
	reply := l.reply(t, format, args...)
	if err := reply.Err(); err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
	if len(reply) < 2 || len(reply[1]) == 0 {
		return nil
	}
	return reply[1][0].Values
}

// refused sends one action that must fail with a status.
func (l *live) refused(t *testing.T, status omis.Status, format string, args ...any) {
	t.Helper()
	for _, service := range l.reply(t, format, args...) {
		for _, result := range service {
			if result.Status == status {
				return
			}
		}
	}
	t.Errorf("%s is answered by %v, want %v", fmt.Sprintf(format, args...), l.reply(t, format, args...), status)
}

// told collects the replies of a conditional request.
type told struct {
	csr string
	mu  sync.Mutex
	all [][]omis.Value // what the last action returned for the first object
}

// define defines a conditional request, and enables it.
func (l *live) define(t *testing.T, format string, args ...any) *told {
	t.Helper()
	d := &told{}
	reply, err := l.tool.Request(t.Context(), fmt.Sprintf(format, args...), d.add, omis.WaitForFirstReply)
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	d.csr = string(reply[0][0].Values[0].Token())
	l.ask(t, "csr_enable([%s])", d.csr)
	return d
}

func (d *told) add(r omis.Reply) {
	if r[0][0].Status != omis.CSRTriggered {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, r[len(r)-1][0].Values)
}

// print returns parameter i of the action print, for each reply.
func (d *told) print(i int) (list []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, values := range d.all {
		list = append(list, text(values[1].List[i]))
	}
	return list
}

func (d *told) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all)
}

// await waits for n replies, and then a little longer to detect one too many.
func (d *told) await(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(patience); d.count() < n && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond)
	if d.count() != n {
		t.Errorf("%s has %d replies, want %d", d.csr, d.count(), n)
	}
}

// text returns a value in the form that other tools print.
func text(v omis.Value) string {
	switch v.Kind {
	case omis.KindString, omis.KindBinary, omis.KindToken:
		return v.Str
	case omis.KindFloat:
		return strconv.FormatFloat(v.Float, 'g', -1, 64)
	case omis.KindList:
		return strings.Join(texts(v.List), " ")
	}
	if n, ok := v.Int64(); ok {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatUint(v.N, 10)
}

func texts(values []omis.Value) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = text(v)
	}
	return list
}

// witness is a process of testdata/witness.c, which reports what it has done.
type witness struct {
	t                             *testing.T
	cmd                           *exec.Cmd
	in                            io.WriteCloser
	out                           *bufio.Reader
	pid, spinner, waiter          int
	work, called, elsewhere, data uint64
}

// startWitness starts a witness and attaches the tool to it, as p_1.
func startWitness(t *testing.T) (*live, *witness) {
	t.Helper()
	w := &witness{t: t, cmd: exec.Command(subject.Compile(t, "witness", "testdata/witness.c"), "two words", "", "third")}
	w.cmd.Stderr = os.Stderr
	w.in, _ = w.cmd.StdinPipe()
	out, _ := w.cmd.StdoutPipe()
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.cmd.Process.Kill()
		w.cmd.Wait() // the error tells that it was killed
	})
	w.pid = w.cmd.Process.Pid
	if _, err := fmt.Sscanf(w.answer(), "ready %d %d %v %v %v %v", &w.spinner, &w.waiter, &w.work, &w.called, &w.elsewhere, &w.data); err != nil {
		t.Fatal(err)
	}
	l := startLive(t)
	if token := l.ask(t, `proc_attach3([],%d,"")`, w.pid)[0]; token.Token() != "p_1" {
		t.Fatal(token)
	}
	return l, w
}

// says gives the witness a command and returns its report.
func (w *witness) says(what string, n int) []string {
	w.t.Helper()
	fmt.Fprintln(w.in, what, n)
	return strings.Fields(w.answer())
}

func (w *witness) answer() string {
	w.t.Helper()
	line, err := w.out.ReadString('\n')
	if err != nil {
		w.t.Fatalf("the witness does not answer: %v", err)
	}
	return line
}

// until repeats a command until so returns true for the report.
func (w *witness) until(what string, so func(said []string) bool) {
	w.t.Helper()
	eventually(w.t, "what the witness says to "+what, func() bool { return so(w.says(what, 0)) })
}

// token returns the token of a thread of the witness.
func (l *live) token(t *testing.T, tid int) string {
	t.Helper()
	for _, result := range l.reply(t, "thread_get_info([p_1],%#x)", node.ThreadLocalID)[1] {
		if text(result.Values[0]) == fmt.Sprint(tid) {
			return string(result.Objects[0])
		}
	}
	t.Fatalf("the monitor knows no thread %d", tid)
	return ""
}

// status returns a line of the status file of a thread in /proc.
func status(t *testing.T, pid, tid int, name string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no line %s in\n%s", name, b)
	return ""
}

// tells returns the output of another tool.
func tells(t *testing.T, command string, args ...string) string {
	t.Helper()
	out, err := exec.Command(command, args...).Output()
	if err != nil {
		t.Fatalf("%s %q: %v", command, args, err)
	}
	return string(out)
}

// gdb evaluates expressions in a thread, and returns the output of each.
func gdb(t *testing.T, pid, tid int, expressions ...string) []string {
	t.Helper()
	script := fmt.Sprintf("python\nfor t in gdb.selected_inferior().threads():\n    if t.ptid[1] == %d:\n        t.switch()\n", tid)
	for _, e := range expressions {
		script += fmt.Sprintf("print('VALUE ' + str(gdb.parse_and_eval('%s')))\n", e)
	}
	var values []string
	for line := range strings.Lines(tells(t, "gdb", "-q", "-nx", "-batch", "-p", fmt.Sprint(pid), "-ex", script)) {
		if value, ok := strings.CutPrefix(line, "VALUE "); ok {
			values = append(values, strings.TrimSpace(value))
		}
	}
	if len(values) != len(expressions) {
		t.Fatalf("gdb prints %q for %q", values, expressions)
	}
	return values
}

func wantText(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}
