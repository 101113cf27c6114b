package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"mirador/mir/client"
)

// Gateway is a gateway that belongs to one gate.
type Gateway struct {
	Client *client.Client
	cmd    *exec.Cmd
	keeper *Keeper
}

// costsFile is the file in a data directory that says what probes cost on this machine.
const costsFile = "costs.json"

// StartGateway starts a private gateway with its files in dir. self is the command of this program.
// cache, if not "", keeps what probes cost from gate to gate, because to measure that takes
// seconds.
func StartGateway(ctx context.Context, self, dir, cache string, keeper *Keeper) (*Gateway, error) {
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "socket")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	copyFile(filepath.Join(cache, costsFile), filepath.Join(data, costsFile))
	log, err := os.Create(filepath.Join(dir, "gateway.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(self, "serve", "--socket", socket, "--listen", "off", "--data", data, "--calibrate", "when-needed", "--log-level", "warn")
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C must not reach it before the gate has cleaned up
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start a gateway: %w", err)
	}
	g := &Gateway{cmd: cmd, keeper: keeper}
	if err := keeper.End(cmd.Process.Pid); err != nil {
		return nil, errors.Join(err, g.stop())
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	go io.Copy(io.Discard, out)
	if !strings.HasPrefix(line, "ready") {
		err := g.stop()
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("the gate's own gateway did not start (%w): %s", err, strings.TrimSpace(string(text)))
	}
	g.Client, err = client.New("unix:"+socket, client.Options{})
	return g, err
}

// Close ends the gateway and keeps what it has measured about probes.
func (g *Gateway) Close(cache string) error {
	g.Client.Close()
	err := g.stop()
	if cache != "" && os.MkdirAll(cache, 0o700) == nil {
		// Without the copy the next gate measures again.
		copyFile(filepath.Join(g.cmd.Args[7], costsFile), filepath.Join(cache, costsFile))
	}
	return err
}

// longestStop is longer than the gateway takes at most to end by itself.
const longestStop = 20 * time.Second

func (g *Gateway) stop() error {
	g.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	kill := time.AfterFunc(longestStop, func() { g.cmd.Process.Kill() })
	defer kill.Stop()
	err := g.cmd.Wait()
	g.keeper.Forget(g.cmd.Process.Pid)
	return err
}

// copyFile copies a small file if it exists; the copy appears at once, for other gates.
func copyFile(from, to string) {
	text, err := os.ReadFile(from)
	if err != nil {
		return
	}
	part := fmt.Sprintf("%s.%d", to, os.Getpid())
	if os.WriteFile(part, text, 0o600) == nil {
		os.Rename(part, to) // without the file the figures are measured again
	}
}
