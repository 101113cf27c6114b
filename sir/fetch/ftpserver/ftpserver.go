// Package ftpserver starts an FTP server for tests: pyftpdlib's.
package ftpserver

import (
	"bufio"
	"io"
	"os/exec"
	"regexp"
	"testing"
)

var serving = regexp.MustCompile(`starting FTP server on (\S+),`)

// Start serves a folder until the test ends, and returns the server's address. With no user anyone may
// log in as anonymous.
func Start(t *testing.T, folder string, options ...string) string {
	t.Helper()
	args := append([]string{"-u", "-m", "pyftpdlib", "-i", "127.0.0.1", "-p", "0", "-d", folder}, options...)
	c := exec.Command("/usr/bin/python3", args...)
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at := serving.FindStringSubmatch(lines.Text()); at != nil {
			go io.Copy(io.Discard, out)
			return at[1]
		}
	}
	t.Fatalf("the FTP server has not started: %v", lines.Err())
	return ""
}
