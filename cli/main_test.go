package cli

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"go.uber.org/goleak"

	"mirador/examples/targets"
	"mirador/mir/client"
	"mirador/mir/conform"
	"mirador/omis/place/kernel/persist"
)

// miradorPath is the mirador program. Tests need the real program because the monitor starts it
// again as its warden, and another user must be able to run it.
var miradorPath string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mirador-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	remove, err := removeInTheEnd(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	miradorPath = filepath.Join(dir, "mirador")
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	build := exec.Command("go", "build", "-o", miradorPath, "mirador")
	if made := os.Getenv(mortalEnv); made != "" {
		build = exec.Command("cp", made, miradorPath)
	}
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot build mirador: %v\n%s", err, out)
		return 1
	}
	if err := waitTogether(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := m.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// waitTogether lets three parallel tests run at the same time even on two processors: these tests wait most of their
// time, for processes that start and end.
func waitTogether() error {
	flag.Parse()
	return flag.Set("test.parallel", "3")
}

// patience limits how long a test waits for something that takes milliseconds on an idle machine.
const patience = 30 * time.Second

// served is a running "mirador serve".
type served struct {
	dir    string // all users may read it
	socket string
	url    string
	mark   string // in the environment of all processes that it starts
	uid    int
	more   []string // more arguments
	cmd    *exec.Cmd
	ended  chan struct{}
	log    string // a file, because programs that the gateway starts have it open too
}

// startServe starts a gateway as a user and waits for its line "ready". At the end of the test it
// ends the gateway and checks that no process is left.
func startServe(t *testing.T, uid int, more ...string) *served {
	t.Helper()
	s := &served{dir: targets.SharedDir(t), mark: targets.NoneLeft(t), uid: uid, more: more}
	if err := os.Chown(s.dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	s.socket = filepath.Join(s.dir, "m.sock")
	s.log = filepath.Join(t.TempDir(), "log")
	out := s.begin(t)
	t.Cleanup(func() {
		s.end(t)
		s.clean(t)
	})
	s.await(t, out)
	return s
}

// begin starts the gateway and returns its standard output. It may be called again after the
// gateway has ended; the data directory stays the same.
func (s *served) begin(t *testing.T) io.Reader {
	t.Helper()
	s.lendCosts(t)
	s.cmd = exec.Command(miradorPath, append([]string{"serve", "--socket", s.socket, "--listen", "127.0.0.1:0", "--data", s.data(), "--calibrate", "when-needed"}, s.more...)...)
	s.cmd.Env = append(os.Environ(), s.mark)
	s.cmd.Dir = "/"
	log, err := os.OpenFile(s.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.cmd.Stderr = log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.uid != os.Geteuid() {
		s.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(s.uid), Gid: uint32(s.uid)}
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := startTied(s.cmd); err != nil {
		t.Fatal(err)
	}
	s.ended = make(chan struct{})
	return out
}

// clean removes what a killed gateway has left in the kernel.
func (s *served) clean(t *testing.T) {
	t.Helper()
	f, err := persist.Of(s.data())
	if err == nil {
		err = f.Clear(link.Link.Close)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// data returns the data directory: the one in the arguments, or one in the test's directory.
func (s *served) data() string {
	if i := slices.Index(s.more, "--data"); i >= 0 {
		return s.more[i+1]
	}
	return filepath.Join(s.dir, "data")
}

// await waits for the line "ready".
func (s *served) await(t *testing.T, out io.Reader) {
	t.Helper()
	line, err := bufio.NewReader(out).ReadString('\n')
	cmd, ended := s.cmd, s.ended
	go func() { // also if the test fails here, since the clean-up waits for ended
		cmd.Wait()
		close(ended)
	}()
	fields := strings.Fields(line)
	if err != nil || len(fields) != 3 || fields[0] != "ready" || fields[1] != "unix:"+s.socket {
		t.Fatalf("first line %q, %v\n%s", line, err, s.logged())
	}
	s.url = fields[2]
}

// logged returns the gateway's log.
func (s *served) logged() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// end stops the gateway as a service manager would.
func (s *served) end(t *testing.T) {
	t.Helper()
	s.cmd.Process.Signal(syscall.SIGTERM)
	defer s.collectCosts(t)
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Errorf("the gateway did not end\n%s", s.logged())
		s.cmd.Process.Kill()
		<-s.ended
	}
	if t.Failed() {
		t.Logf("log of the gateway:\n%s", s.logged())
	}
}

// mirador runs a command against the gateway, as the gateway's user.
func (s *served) mirador(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command(miradorPath, args...)
	cmd.Env = append(os.Environ(), "MIRADOR_GATEWAY=unix:"+s.socket)
	cmd.Dir = s.dir
	cmd.Stdin = strings.NewReader(stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cmd.SysProcAttr.Credential}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if slices.Contains(args, "post") && args[len(args)-1] == "-" && strings.HasPrefix(out.String(), "<") {
		new(conform.Conversation).Answer(t, client.Extended, []byte(stdin), out.Bytes())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must is mirador for a command that must succeed.
func (s *served) must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, errs, status := s.mirador(t, stdin, args...)
	if status != 0 {
		t.Fatalf("mirador %s: status %d\n%s%s", strings.Join(args, " "), status, out, errs)
	}
	return out
}

// curl posts with the real curl and returns the status and the body.
func curl(t *testing.T, args ...string) (int, string) {
	t.Helper()
	out, err := exec.Command("curl", append([]string{"-s", "-w", "\n%{http_code}"}, args...)...).Output()
	if err != nil {
		t.Fatalf("curl %q: %v", args, err)
	}
	i := bytes.LastIndexByte(out, '\n')
	var status int
	if _, err := fmt.Sscan(string(out[i+1:]), &status); err != nil {
		t.Fatalf("curl %q: %q", args, out)
	}
	if d := slices.Index(args, "-d"); d >= 0 && strings.HasSuffix(args[len(args)-1], "/mir") {
		prefer := ""
		if h := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "Prefer: ") }); h >= 0 {
			prefer = args[h]
		}
		new(conform.Conversation).Answer(t, prefer, []byte(args[d+1]), out[:i])
	}
	return status, string(out[:i])
}

// wants is curl for a request that must succeed.
func wants(t *testing.T, args ...string) string {
	t.Helper()
	status, body := curl(t, args...)
	if status >= http.StatusBadRequest {
		t.Fatalf("curl %q: status %d: %s", args, status, body)
	}
	return body
}

// eventually waits until so returns true.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in %v: %s", patience, what)
		}
	}
}

// lockedBuffer collects the output of a process while the test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
