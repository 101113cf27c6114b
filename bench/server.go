package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/sys/unix"

	"mirador/bench/subject"
	"mirador/omis/host/proc"
)

// server is a process that answers on a Unix socket.
type server struct {
	name    string
	socket  string
	command *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	stopped sync.Once
}

// serverCPU is the CPU of the servers; the client uses others.
const serverCPU = 0

// Limits for servers that hang.
const (
	startPatience = 30 * time.Second
	stopPatience  = 15 * time.Second
)

// start starts a server on one CPU and waits until it accepts connections. The server's
// output goes to a file: a process that it leaves behind would keep a pipe open and block
// the reader.
func start(ctx context.Context, dir, name, program string, args ...string) (*server, error) {
	s, err := startFree(dir, name, exec.Command("env", append([]string{"GOMAXPROCS=1", program}, args...)...))
	if err != nil {
		return nil, err
	}
	if err = s.ready(ctx); err == nil {
		err = subject.PinProcess(fmt.Sprint(s.command.Process.Pid), serverCPU)
	}
	if err != nil {
		s.stop()
		text, _ := os.ReadFile(logOf(dir, name))
		return nil, fmt.Errorf("%s does not start: %w\n%s", name, err, text)
	}
	return s, nil
}

func logOf(dir, name string) string { return filepath.Join(dir, name+".log") }

// startFree starts a server on any CPU.
func startFree(dir, name string, cmd *exec.Cmd) (*server, error) {
	said, err := os.Create(logOf(dir, name))
	if err != nil {
		return nil, err
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	// An interrupt from the terminal is only for this process, which stops the servers in
	// order. If this process is killed, they end too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{name: name, socket: socketOf(dir, name), command: cmd, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		cmd.Wait()
	}()
	return s, nil
}

// socketOf returns the path of a server's socket.
func socketOf(dir, name string) string { return filepath.Join(dir, name+".sock") }

func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		conn, err := net.Dial("unix", s.socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.ended:
			return errors.New("it has ended")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stop ends the server by SIGTERM, and after a while by SIGKILL. It may be called again.
func (s *server) stop() {
	s.stopped.Do(func() {
		s.command.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.ended:
		case <-time.After(stopPatience):
			s.command.Process.Kill()
			<-s.ended
		}
	})
}

// cpuTime returns the CPU time of the server.
func (s *server) cpuTime() (time.Duration, error) { return cpuTimeOf(s.command.Process.Pid) }

// cpuTimeOf returns the CPU time of a process.
func cpuTimeOf(pid int) (time.Duration, error) {
	var t unix.Timespec
	// The clock of a process: CPUCLOCK_SCHED of ~pid (see clock_getcpuclockid(3)).
	clock := int32(^pid)<<3 | 2
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}

// resident returns the server's resident memory in KiB.
func (s *server) resident() (int, error) {
	status, err := proc.ReadStatus(s.command.Process.Pid)
	if err == nil && status.Resident == 0 {
		err = fmt.Errorf("%s has no resident memory", s.name)
	}
	return int(status.Resident >> 10), err
}

// bareCommand makes this program the bare server.
const bareCommand = "bare"

// serveBare runs the server to compare the gateway with: it uses chi, reads the body and
// writes a reply.
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
