//go:build linux && amd64

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"mirador/examples/child"
	"mirador/mir/client"
	"mirador/omis/host/proc"
)

// gateway is the mirador under test. After a kill it is started again, with the same data directory.
type gateway struct {
	program, placements, dir string
	log                      *os.File

	mu     sync.RWMutex
	child  *child.Child
	client *client.Client
	life   int // number of starts
}

// errGone reports that the gateway that got the request was killed.
var errGone = errors.New("the gateway was killed")

func openGateway(program, placements, dir string) (*gateway, error) {
	log, err := os.Create(filepath.Join(dir, "gateway.log"))
	if err != nil {
		return nil, err
	}
	g := &gateway{program: program, placements: placements, dir: dir, log: log}
	return g, g.start()
}

// start starts the gateway and waits until it answers. The caller holds the lock, or has not shared
// the gateway yet.
func (g *gateway) start() error {
	const patience = time.Minute // the machine is busy
	g.life++
	socket := filepath.Join(g.dir, fmt.Sprintf("socket-%d", g.life))
	args := []string{"serve", "--prefer", "sharing", "--calibrate", "when-needed", "--listen", "off", "--socket", socket, "--data", filepath.Join(g.dir, "data")}
	if g.placements != "" {
		args = append(args, "--placements", g.placements)
	}
	cmd := exec.Command(g.program, args...)
	cmd.Stderr = g.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must reach only this process, which ends the gateway
	c, err := child.Start(cmd)
	if err != nil {
		return err
	}
	g.child = c
	if line, err := c.Line(patience); !strings.HasPrefix(line, "ready") {
		c.Kill()
		return fmt.Errorf("the gateway does not start: %q, %v", line, err)
	}
	g.client, err = client.New("unix:"+socket, client.Options{})
	return err
}

// kill kills the gateway at once, and starts it again.
func (g *gateway) kill() error {
	g.mu.RLock()
	g.child.Cmd.Process.Kill()
	g.mu.RUnlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.child.Wait() // the error tells that it was killed
	g.client.Close()
	return g.start()
}

// stop ends the gateway by SIGTERM.
func (g *gateway) stop() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.log.Close()
	g.child.Cmd.Process.Signal(syscall.SIGTERM)
	g.client.Close()
	return g.child.Wait()
}

// ask sends a request to the gateway, unless it was killed since the given life.
func (g *gateway) ask(ctx context.Context, life int, r client.Request) (*client.Reply, error) {
	g.mu.RLock()
	c, now := g.client, g.life
	g.mu.RUnlock()
	if life != now {
		return nil, errGone
	}
	reply, err := c.Do(ctx, r)
	if err == nil && reply.Failed() {
		return nil, reply.Err()
	}
	if err != nil && g.isKilled(life) {
		return nil, errGone
	}
	return reply, err
}

// isKilled reports whether the gateway of a life was killed.
func (g *gateway) isKilled(life int) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.life != life || proc.Ending(g.child.PID)
}

// now returns the present life.
func (g *gateway) now() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.life
}
