package cli

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"mirador/mir/client"
)

// stranger is the uid of another user.
const stranger = 65534

// impostor is a server that one user runs on a socket in a directory of another user. It
// counts the requests that it receives.
type impostor struct {
	socket   string
	requests atomic.Int64
}

func startImpostor(t *testing.T, listens, owns int) *impostor {
	t.Helper()
	dir := t.TempDir()
	im := &impostor{socket: filepath.Join(dir, "m.sock")}
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755), os.Chown(dir, listens, -1)); err != nil {
		t.Fatal(err)
	}
	l, err := listenAs(im.socket, listens)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chown(dir, owns, -1), os.Chmod(im.socket, 0o666)); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { im.requests.Add(1) })}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return im
}

// listenAs listens on a thread that switches to another user, and that ends afterwards.
func listenAs(socket string, uid int) (l net.Listener, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			err = errno
			return
		}
		l, err = net.Listen("unix", socket)
	}()
	<-done
	return l, err
}

// TestOnlyATrustedGatewayGetsRequests checks that only a gateway of root, this user or the
// named user receives requests, because they may contain arguments and environment variables.
func TestOnlyATrustedGatewayGetsRequests(t *testing.T) {
	for _, c := range []struct {
		name          string
		listens, owns int
		named         string
		trusted       bool
	}{
		{"of this user", os.Geteuid(), os.Geteuid(), "", true},
		{"of another user", stranger, stranger, "", false},
		{"of another user that was named", stranger, stranger, strconv.Itoa(stranger), true},
		{"in a directory of another user", os.Geteuid(), stranger, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			im := startImpostor(t, c.listens, c.owns)
			g, err := client.New("unix:"+im.socket, client.Options{User: c.named})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			_, err = g.Do(t.Context(), client.Request{Method: http.MethodPost, Path: "/apps", Body: []byte("secret")})
			var untrusted *client.Untrusted
			if c.trusted && err != nil || !c.trusted && !errors.As(err, &untrusted) {
				t.Errorf("error %v", err)
			}
			if got := im.requests.Load() > 0; got != c.trusted {
				t.Errorf("the server got a request: %v", got)
			}
		})
	}
}
