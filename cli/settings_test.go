package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// TestConfigurationFromPipe checks that a pipe is read if it has a writer, and that the error names
// the pipe if it has none.
func TestConfigurationFromPipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := readConfiguration(pipe); err == nil || !strings.Contains(err.Error(), "without a writer") {
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
	// Open the pipe for writing without writing to it.
	idle, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if text, err := readConfiguration(pipe); err == nil || !strings.Contains(err.Error(), "without a writer") {
		t.Errorf("read %q, %v", text, err)
	}
	if _, err := readConfiguration(t.TempDir()); err == nil {
		t.Error("read a folder")
	}
}

// TestLongestRequest checks that the default refuses a request that is meant to keep the gateway
// busy, and that the user can raise the limit for ten thousand probes.
func TestLongestRequest(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{{nil, 65536}, {[]string{"--longest-request", "1048576"}, 1 << 20}, {[]string{"--longest-request", "9"}, 0}, {[]string{"--longest-request", "99999999"}, 0}} {
		var s settings
		cmd := &cobra.Command{}
		s.define(cmd)
		if err := cmd.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		got, err := s.complete(cmd, "")
		if refused := err != nil; refused != (c.want == 0) || !refused && got.Longest != c.want {
			t.Errorf("%q: %d bytes, %v", c.args, got.Longest, err)
		}
	}
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(`{"longest-request":4096}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[int][]string{4096: nil, 2048: {"--longest-request", "2048"}} {
		var s settings
		cmd := &cobra.Command{}
		s.define(cmd)
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		if got, err := s.complete(cmd, file); err != nil || got.Longest != want {
			t.Errorf("%q over a file: %d bytes, %v", args, got.Longest, err)
		}
	}
}
