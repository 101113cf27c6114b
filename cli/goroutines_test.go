package cli

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// startGo builds and starts a Go program, which ends with the test.
func startGo(t *testing.T, folder string) (pid int, tell func(string), line func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "waiting")
	if out, err := exec.Command("go", "build", "-o", path, folder).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := startTied(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	line = func() string {
		if !lines.Scan() {
			t.Fatalf("the program has ended: %v", lines.Err())
		}
		return lines.Text()
	}
	tell = func(s string) {
		if _, err := in.Write([]byte(s + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	line() // the program is ready
	return cmd.Process.Pid, tell, line
}

// TestGoroutines compares the goroutines in snapshots with what Go's runtime reports. A snapshot
// contains goroutines only if the request asks for them.
func TestGoroutines(t *testing.T) {
	s := startServe(t, 0)
	pid, tell, line := startGo(t, "../omis/linux/testdata/waiting")
	tell("report")
	header := regexp.MustCompile(`^goroutine (\d+) \[([^\],]*)`)
	want := make(map[string]string) // reasons by ids
	for l := line(); l != "end"; l = line() {
		if m := header.FindStringSubmatch(l); m != nil {
			want[m[1]] = m[2]
		}
	}
	s.must(t, "", "attach", "--app", "waiting", strconv.Itoa(pid))
	if got := s.must(t, `<snapshotreq stack="2"/>`, "post", "-"); strings.Contains(got, "goroutine") {
		t.Errorf("a request that does not ask for goroutines is answered by %s", got)
	}
	got := s.must(t, `<snapshotreq stack="6" xmlns:gateway="urn:mirador:gateway" gateway:goroutines="true"/>`, "post", "-")
	element := regexp.MustCompile(`<gateway:goroutine id="(\d+)" state="waiting" reason="([^"]*)"[^>]*>(.*?)</gateway:goroutine>`)
	seen := make(map[string]string)
	stacks := make(map[string]int)
	for _, m := range element.FindAllStringSubmatch(got, -1) {
		seen[m[1]] = m[2]
		if n := strings.Count(m[3], "<gateway:stack>"); n == 0 || n > 6 {
			t.Errorf("goroutine %s has %d frames, and 6 were asked for", m[1], n)
		}
		for _, name := range []string{"main.receives", "main.sends", "main.selects", "time.Sleep"} {
			if strings.Contains(m[3], "<gateway:stack>"+name+"+0x") {
				stacks[name]++
			}
		}
	}
	waiting := []string{"chan receive", "chan send", "select", "sleep", "sync.Mutex.Lock"}
	for id, reason := range want {
		if slices.Contains(waiting, reason) && seen[id] != reason {
			t.Errorf("goroutine %s waits for %q, while the runtime reports %q", id, seen[id], reason)
		}
	}
	if stacks["main.receives"] != 3 || stacks["main.sends"] != 1 || stacks["main.selects"] != 1 || stacks["time.Sleep"] != 1 {
		t.Errorf("on the stacks are %v, in %s", stacks, got)
	}
}
