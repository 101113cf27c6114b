package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/sys/unix"
)

// server is a process that answers on a Unix socket.
type server struct {
	name    string
	socket  string
	command *exec.Cmd
}

// serverCPU is where servers run; the client stays off it.
const serverCPU = 0

// start starts a server on one CPU and waits for its line "ready".
func start(ctx context.Context, name, socket, program string, args ...string) (*server, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{name: name, socket: socket, command: cmd}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready") {
		s.stop()
		return nil, fmt.Errorf("%s did not get ready: %q, %v", name, line, err)
	}
	go io.Copy(io.Discard, out)
	return s, s.pin()
}

// pin puts all threads of the server on one CPU; later ones inherit that.
func (s *server) pin() error {
	var set unix.CPUSet
	set.Set(serverCPU)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", s.command.Process.Pid))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(filepath.Base(task))
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			return fmt.Errorf("cannot pin %s: %w", s.name, err)
		}
	}
	return nil
}

func (s *server) stop() {
	s.command.Process.Signal(syscall.SIGTERM)
	s.command.Wait()
}

// cpuTime is what the server has used so far, by its CPU clock.
func (s *server) cpuTime() (time.Duration, error) {
	var t unix.Timespec
	// The clock of a process: CPUCLOCK_SCHED of ~pid (see clock_getcpuclockid(3)).
	clock := int32(^s.command.Process.Pid)<<3 | 2
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}

// resident is the server's memory in KiB.
func (s *server) resident() (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strconv.Atoi(strings.Fields(size)[0])
		}
	}
	return 0, fmt.Errorf("%s has no resident memory", s.name)
}

// bareCommand makes this program the bare server.
const bareCommand = "bare"

// serveBare is what the gateway is compared with: chi, the body read, a reply
// written.
func serveBare(socket, reply string) error {
	body, err := os.ReadFile(reply)
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	router := chi.NewRouter()
	router.Post("/mir", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	})
	fmt.Println("ready")
	ctx, stop := signalled()
	defer stop()
	server := &http.Server{Handler: router}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}
