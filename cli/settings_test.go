package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestConfigurationFromPipe: a pipe is read when somebody writes into it, and
// said to be one when nobody does.
func TestConfigurationFromPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := readConfiguration(pipe); err == nil || !strings.Contains(err.Error(), "nobody writes") {
		t.Errorf("read %q, %v", text, err)
	}
	written := make(chan error)
	go func() { written <- os.WriteFile(pipe, []byte(`{"node":"here"}`), 0) }()
	if text, err := readConfiguration(pipe); err != nil || string(text) != `{"node":"here"}` {
		t.Errorf("read %q, %v", text, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	// Somebody who has opened it, and does not write.
	idle, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if text, err := readConfiguration(pipe); err == nil || !strings.Contains(err.Error(), "nobody writes") {
		t.Errorf("read %q, %v", text, err)
	}
	if _, err := readConfiguration(t.TempDir()); err == nil {
		t.Error("read a folder")
	}
}
