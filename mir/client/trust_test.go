package client

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// TestUntrustedListener checks that nothing is sent to a socket on which a user listens that this
// client does not trust. A test of package cli does the same with two users.
func TestUntrustedListener(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "m.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	for _, c := range []struct {
		users   []int
		trusted bool
	}{{[]int{os.Geteuid(), 0}, true}, {[]int{os.Geteuid() + 1}, false}} {
		conn, err := dialSocket(t.Context(), Place{Socket: socket}, c.users)
		if conn != nil {
			conn.Close()
		}
		if c.trusted != (err == nil) || !c.trusted && !errors.As(err, new(*Untrusted)) {
			t.Errorf("the users %v: %v", c.users, err)
		}
	}
}

func TestUnknownGatewayUser(t *testing.T) {
	if _, err := New("unix:/nonexistent", Options{User: "nobody-of-this-name"}); err == nil {
		t.Error("accepted")
	}
}

func TestAddresses(t *testing.T) {
	t.Setenv("MIRADOR_GATEWAY", "https://there:6470/")
	for text, want := range map[string]string{"": "https://there:6470", "unix:/a": "unix:/a", "http://h:1": "http://h:1"} {
		if place, err := FindPlace(text); err != nil || place.String() != want {
			t.Errorf("%q is %s, %v; want %s", text, place, err, want)
		}
	}
	for _, bad := range []string{"unix:", "/run/x.sock", "ftp://h"} {
		if _, err := New(bad, Options{}); !errors.As(err, new(*AddressError)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
