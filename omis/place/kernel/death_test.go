//go:build linux && amd64

package kernel_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mirador/omis/linux"
	"mirador/omis/monitor"
	"mirador/omis/monitor/rig"
	"mirador/omis/place/kernel"
	"mirador/omis/place/kernel/registrar"
	"mirador/omis/program"
)

// monitorEnv makes the test binary a monitor that measures until it is killed. Its value is the requests
// that the monitor sends.
const monitorEnv = "MIRADOR_TEST_MONITOR"

// asRegistrar is the argument that makes the test binary a registrar.
const asRegistrar = "registrar"

// registrarCommand returns the command that runs the test binary as a registrar. The new process has the
// same name as this one.
func registrarCommand() []string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{self, asRegistrar}
}

func isMonitor() bool {
	if len(os.Args) > 1 && os.Args[1] == asRegistrar {
		if err := registrar.Run(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return true
	}
	if os.Getenv(unprivileged) != "" {
		sayWhatIsMissing()
		return true
	}
	if a := os.Getenv(keeperEnv); a != "" {
		keep(a)
		return true
	}
	requests := os.Getenv(monitorEnv)
	if requests == "" {
		return false
	}
	m, err := monitor.Open(monitor.Config{
		Linux:   linux.Config{Name: "here"},
		Placers: func(*linux.Node) []program.Placer { return []program.Placer{kernel.New(registrarCommand())} },
	})
	if err != nil {
		fmt.Println(err)
		return true
	}
	for _, request := range strings.Split(requests, "\n") {
		if r, err := m.Engine.Tool("test").Request(context.Background(), request, nil, 0); err != nil || r.Err() != nil {
			fmt.Println(err, r.Err())
			return true
		}
	}
	fmt.Println("measuring")
	io.Copy(io.Discard, os.Stdin)
	return true
}

// kills is the number of monitors that are killed.
const kills = 12

// Monitors are killed at random moments. The target continues with correct results, and its code is the
// original when the registrar has ended.
func TestMonitorsDeath(t *testing.T) {
	g := rig.Start(t, rig.Scenes(t))
	g.Do("forever")
	g.Do("forever")
	before := g.Code(g.Func["work"], g.Size["work"])
	requests := []string{
		fmt.Sprintf(`: proc_attach3([],%d,"") pa_counter_create() pa_timer_create()`, g.ID.PID),
		fmt.Sprintf("thread_reached_addr([],%#x) : pa_counter_add([pa_c_1],1) pa_timer_start([pa_t_1])", g.Func["work"]),
	}
	for _, exit := range g.Exits("work") {
		requests = append(requests, fmt.Sprintf("thread_reached_addr([],%#x) : pa_timer_stop([pa_t_1])", exit))
	}
	requests = append(requests, ": csr_enable([])")
	for i := range kills {
		killMonitor(t, requests, i%3 > 0) // the others are killed while they begin
		if got := g.Do("recurse 30"); got != "done 331" {
			t.Errorf("the target said %q", got)
		}
		rig.Until(t, "the code is what it was", func() bool {
			return bytes.Equal(before, g.Code(g.Func["work"], g.Size["work"]))
		})
	}
}

// The same for system calls, one of which waits when the monitor is killed.
func TestMonitorsDeathAtCalls(t *testing.T) {
	g := rig.Start(t, rig.Caller(t))
	g.Do("forever")
	requests := []string{
		fmt.Sprintf(`: proc_attach3([],%d,"") pa_counter_create() pa_timer_create()`, g.ID.PID),
		`thread_has_started_sys_call([],"") : pa_counter_add([pa_c_1],1)`,
		`thread_has_started_sys_call([],"readv") : pa_timer_start([pa_t_1])`,
		`thread_has_ended_sys_call([],"readv") : pa_timer_stop([pa_t_1])`,
		": csr_enable([])",
	}
	for i := range kills {
		g.Tell("interrupted 20")
		killMonitor(t, requests, i%3 > 0)
		if got := g.Line(); got != "done 1" {
			t.Errorf("the target said %q", got)
		}
		if got := g.Do("late 1"); got != "done 1" {
			t.Errorf("the target said %q", got)
		}
	}
}

// killMonitor starts a monitor and kills it: some time after it has begun to measure, or, unless measuring,
// before.
func killMonitor(t *testing.T, requests []string, measuring bool) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), monitorEnv+"="+strings.Join(requests, "\n"))
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if measuring {
		if line, _ := bufio.NewReader(out).ReadString('\n'); line != "measuring\n" {
			t.Fatalf("the monitor said %q", line)
		}
	}
	time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
}
