//go:build linux && amd64

package kernel

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mirador/omis"
	"mirador/omis/host/proc"
	"mirador/omis/place/kernel/persist"
)

// oneRecord is a journal with the record of a registrar.
type oneRecord struct{ id omis.ProcID }

func (oneRecord) Keys(string) []string    { return nil }
func (oneRecord) Put(string, any) error   { return nil }
func (oneRecord) Delete(key string) error { return nil }

func (b oneRecord) Get(key string, value any) (bool, error) {
	text, err := json.Marshal(b.id)
	if err != nil || key != persist.RegistrarKey {
		return false, err
	}
	return true, json.Unmarshal(text, value)
}

// A registrar that does not end is reported before the monitor goes on without it.
func TestRegistrarThatDoesNotEndIsNamed(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	start, err := proc.ThreadStart(cmd.Process.Pid, cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	id := omis.ProcID{PID: cmd.Process.Pid, Start: start}
	var said []string
	awaitRegistrar(oneRecord{id}, silence+silence/2, func(message string) { said = append(said, message) })
	if len(said) != 2 || !strings.Contains(said[0], "waiting up to") || !strings.Contains(said[1], "going on without it") {
		t.Errorf("it said %q", said)
	}
	began := time.Now()
	id.Start++ // another process has its number
	awaitRegistrar(oneRecord{id}, time.Minute, func(message string) { t.Errorf("it said %q", message) })
	if took := time.Since(began); took > silence {
		t.Errorf("it waited %v for a process that has another's number", took)
	}
}
