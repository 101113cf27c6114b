package cli

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mirador/examples/targets"
	"mirador/omis/linux/subject"
)

// TestSystemdUnit starts a gateway as systemd does by the unit files of the examples: with the
// socket that clients connect to, with the socket for notifications, and with the capabilities
// of the unit alone. It measures a program of another user.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	dir := targets.SharedDir(t)
	path := filepath.Join(dir, "m.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	socket, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	notifications, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notifications.Close()

	configuration := filepath.Join(dir, "mirador.json")
	if err := os.WriteFile(configuration, fmt.Appendf(nil, `{"data": %q, "calibrate": "when-needed"}`, filepath.Join(dir, "data")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec setpriv --bounding-set "$0" "$@"`, "-all,"+unitCapabilities(t),
		miradorPath, "serve", "--config", configuration)
	cmd.Env = append(os.Environ(), targets.NoneLeft(t), "LISTEN_FDS=1", "LISTEN_FDNAMES=mirador.socket", "NOTIFY_SOCKET="+filepath.Join(dir, "notify"))
	cmd.ExtraFiles = []*os.File{socket}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log := new(lockedBuffer)
	cmd.Stderr = log
	if err := startTied(cmd); err != nil {
		t.Fatal(err)
	}
	socket.Close()
	told := func() string {
		text := make([]byte, 100)
		n, err := notifications.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
	if got := told(); got != "READY=1" {
		t.Errorf("systemd is told %q\n%s", got, log)
	}
	command := func(args ...string) string {
		c := exec.Command(miradorPath, args...)
		c.Env = append(os.Environ(), "MIRADOR_GATEWAY=unix:"+path)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	target := exec.Command(subject.Compile(t, "tally", "testdata/tally.c"))
	target.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	c := startTallyAs(t, target)
	before := c.says("stop")
	command("attach", strconv.Itoa(c.PID))
	command("probe", "add", "--metric", "SYSCALL_COUNT", "--process", "*") // by eBPF
	command("probe", "add", "--region", "tally:work", "--metric", "COUNT", "--process", "*")
	c.says("go")
	calls := c.says("stop") - before
	if got := command("probe", "value", "probe-2"); !strings.HasSuffix(got, fmt.Sprintf(" %d\n", calls)) {
		t.Errorf("%d calls are counted as\n%s", calls, got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := told(); got != "STOPPING=1" {
		t.Errorf("systemd is told %q", got)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("systemd's socket is gone: %v", err)
	}
	c.says("stop")
}

// unitCapabilities returns the capabilities of the unit, as setpriv takes them.
func unitCapabilities(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../examples/systemd/mirador.service")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^CapabilityBoundingSet=(.*)$`).FindStringSubmatch(string(text))
	if line == nil {
		t.Fatal("the unit has no CapabilityBoundingSet")
	}
	var list []string
	for _, name := range strings.Fields(line[1]) {
		list = append(list, "+"+strings.ToLower(strings.TrimPrefix(name, "CAP_")))
	}
	return strings.Join(list, ",")
}

// TestSocketActivationIsRefused passes sockets that a gateway must not use.
func TestSocketActivationIsRefused(t *testing.T) {
	open, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	remote, err := open.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	plain, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for _, c := range []struct {
		fds  string
		file *os.File
		why  string
	}{
		{"1", remote, "which needs TLS"},
		{"1", plain, "socket 3 of systemd"},
		{"2", remote, "of systemd"},
		{"many", remote, `LISTEN_FDS is "many"`},
		{"1000000", remote, "at most 16"},
	} {
		cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, miradorPath, "serve", "--data", filepath.Join(t.TempDir(), "data"))
		cmd.Env = append(os.Environ(), "LISTEN_FDS="+c.fds)
		cmd.ExtraFiles = []*os.File{c.file}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.why) {
			t.Errorf("%s, %s: %v, %s, want %q", c.fds, c.file.Name(), err, out, c.why)
		}
	}
}
