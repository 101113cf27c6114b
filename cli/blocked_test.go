package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mirador/examples/targets"
	"mirador/omis/linux/subject"
)

// TestBlockedFileSystem has a program on a FUSE file system whose server stops to answer.
// Requests about the program are refused in time, with a reason; requests about another
// program are answered meanwhile, and the gateway ends in time.
func TestBlockedFileSystem(t *testing.T) {
	t.Parallel()
	t.Run("open", func(t *testing.T) { blockedFileSystem(t, fuseOpen, true) })
	t.Run("read", func(t *testing.T) { blockedFileSystem(t, fuseRead, true) })
	t.Run("everything", func(t *testing.T) { blockedFileSystem(t, everything, false) })
}

// longestAnswer is how long a request may take about a program whose files cannot be read.
const longestAnswer = 20 * time.Second

func blockedFileSystem(t *testing.T, hung uint32, before bool) {
	s := startServe(t, os.Geteuid())
	content, err := os.ReadFile(subject.Compile(t, "tally", "testdata/tally.c"))
	if err != nil {
		t.Fatal(err)
	}
	dir := targets.SharedDir(t)
	f := mountFUSE(t, dir, content)
	// The shell executes it: a child of this process would need the answers of the file system's server before it
	// executes anything, while the server, a part of this process, may wait for that child.
	blocked := startTallyAs(t, exec.Command("sh", "-c", `exec "$0"`, filepath.Join(dir, "tally")))
	t.Cleanup(func() { f.hung.Store(0) })
	c := startTally(t)
	s.must(t, "", "attach", "--app", "tally", fmt.Sprint(c.PID))
	if before {
		s.must(t, "", "attach", "--app", "blocked", fmt.Sprint(blocked.PID))
	}
	f.hung.Store(hung)
	answers := make(chan string, 10)
	about := func(method, path, body string) {
		begin := time.Now()
		status, text := s.request(t, method, path, body)
		answers <- fmt.Sprintf("%s %s: %d after %v: %.200s", method, path, status, time.Since(begin).Round(time.Millisecond), text)
		if took := time.Since(begin); took > longestAnswer || status == 0 || status == http.StatusInternalServerError {
			t.Errorf("%s %s %s: status %d after %v: %s", method, path, body, status, took, text)
		}
	}
	if !before {
		attach, _ := json.Marshal(map[string]any{"name": "blocked", "attach": []int{blocked.PID}})
		go about(http.MethodPost, "/apps", string(attach))
	}
	questions := []string{`<snapshotreq named="true" stack="8"/>`, `<sirreq><resource in="file://` + filepath.Join(dir, "tally") + `"/></sirreq>`,
		`<instrreq activated="true" flush="true"><codeRegion from="tally:work"/><metric name="COUNT"/></instrreq>`}
	for _, question := range questions {
		go about(http.MethodPost, "/apps/blocked/mir", question)
	}
	go about(http.MethodGet, "/apps/blocked/sir", "")
	for range 5 {
		begin := time.Now()
		s.mir(t, "tally", `<snapshotreq named="true" stack="8"/>`)
		s.mir(t, "tally", `<instrreq activated="true" flush="true"><codeRegion from="tally:work"/><metric name="COUNT"/></instrreq>`)
		wants(t, "--unix-socket", s.socket, "http://mirador/probes")
		wants(t, "--unix-socket", s.socket, "http://mirador/apps")
		if took := time.Since(begin); took > longestAnswer/2 {
			t.Errorf("requests about another program took %v", took)
		}
		time.Sleep(100 * time.Millisecond)
	}
	count := len(questions) + 1
	if !before {
		count++
	}
	for range count {
		select {
		case a := <-answers:
			t.Log(a)
		case <-time.After(2 * longestAnswer):
			t.Fatal("a request is not answered")
		}
	}
	begin, first := time.Now(), s.cmd
	s.cmd.Process.Signal(syscall.SIGTERM)
	lock, err := os.Open(filepath.Join(s.data(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the data directory is unlocked", func() bool { // the kernel keeps the process while the server does not answer
		return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
	})
	lock.Close()
	if took := time.Since(begin); took > longestEnd+3*time.Second {
		t.Errorf("the gateway ended after %v", took)
	}
	s.await(t, s.begin(t))
	f.abort()
	eventually(t, "the first gateway is gone", func() bool { return first.ProcessState != nil })
}

// request sends a request over the socket; the status is 0 if there is no answer in time.
func (s *served) request(t *testing.T, method, path, body string) (int, string) {
	dial := func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", s.socket) }
	c := http.Client{Timeout: 3 * longestAnswer / 2, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://mirador"+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Content-Type", "application/xml")
	reply, err := c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return 0, err.Error()
	}
	return reply.StatusCode, string(text)
}
