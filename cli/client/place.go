package client

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// DefaultSocket is where a gateway of this user listens.
func DefaultSocket() string {
	if os.Geteuid() == 0 {
		return "/run/mirador/mirador.sock"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "mirador", "mirador.sock")
	}
	// What XDG_RUNTIME_DIR names in a login session; a cron job finds the same gateway.
	if dir := fmt.Sprintf("/run/user/%d", os.Geteuid()); isOwn(dir) {
		return filepath.Join(dir, "mirador", "mirador.sock")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("mirador-%d", os.Geteuid()), "mirador.sock")
}

// isOwn reports whether a directory exists and belongs to this user.
func isOwn(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// DefaultData is where a gateway of this user keeps its token.
func DefaultData() string {
	if os.Geteuid() == 0 {
		return "/var/lib/mirador"
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "mirador")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state", "mirador")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("mirador-%d", os.Geteuid()), "data")
}

// Place is where a gateway is: a Unix socket or a base URL.
type Place struct {
	Socket string
	URL    string
}

func (p Place) String() string {
	if p.Socket != "" {
		return "unix:" + p.Socket
	}
	return p.URL
}

// ParsePlace reads unix:PATH or http(s)://HOST:PORT.
func ParsePlace(text string) (Place, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok && path != "" {
		return Place{Socket: path}, nil
	}
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		return Place{URL: strings.TrimRight(text, "/")}, nil
	}
	return Place{}, fmt.Errorf("%q is no gateway: write unix:PATH or http(s)://HOST:PORT", text)
}

// FindPlace takes the flag, else MIRADOR_GATEWAY, else the default socket.
func FindPlace(flag string) (Place, error) {
	if flag == "" {
		flag = os.Getenv("MIRADOR_GATEWAY")
	}
	if flag == "" {
		return Place{Socket: DefaultSocket()}, nil
	}
	return ParsePlace(flag)
}
