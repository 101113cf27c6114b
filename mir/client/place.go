package client

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// DefaultSocket returns the default socket of a gateway of this user.
func DefaultSocket() string {
	if os.Geteuid() == 0 {
		return "/run/mirador/mirador.sock"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "mirador", "mirador.sock")
	}
	// A login session has XDG_RUNTIME_DIR. Use the same directory in a cron job, to find the
	// same gateway.
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

// DefaultData returns the default data directory of a gateway of this user, which contains its
// token.
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

// Place is the address of a gateway: a Unix socket or a base URL.
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

// ParsePlace parses unix:PATH or http(s)://HOST:PORT.
func ParsePlace(text string) (Place, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok && path != "" {
		return Place{Socket: path}, nil
	}
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		return Place{URL: strings.TrimRight(text, "/")}, nil
	}
	return Place{}, &AddressError{text}
}

// AddressError reports that a text is not the address of a gateway.
type AddressError struct{ Text string }

func (e *AddressError) Error() string {
	return fmt.Sprintf("%q is not a gateway: write unix:PATH or http(s)://HOST:PORT", e.Text)
}

// FindPlace returns the place in the flag, or in MIRADOR_GATEWAY, or the default socket.
func FindPlace(flag string) (Place, error) {
	if flag == "" {
		flag = os.Getenv("MIRADOR_GATEWAY")
	}
	if flag == "" {
		return Place{Socket: DefaultSocket()}, nil
	}
	return ParsePlace(flag)
}
