package gateway

import (
	"net"
	"net/http"
	"testing"
)

// TestForeignHostNamesAreRefused checks that a web page of another site cannot reach the gateway by
// making its own host name resolve to the gateway's address (DNS rebinding).
func TestForeignHostNamesAreRefused(t *testing.T) {
	f := serveFew(t, &scripted{})
	for host, want := range map[string]int{
		"localhost:6470": http.StatusOK, "LOCALHOST.": http.StatusOK, "127.0.0.1:6470": http.StatusOK, "[::1]:6470": http.StatusOK, "[::1]": http.StatusOK,
		"gate.localhost:6470": http.StatusOK, "evil.example:6470": http.StatusMisdirectedRequest, "localhost.evil.example": http.StatusMisdirectedRequest,
		"127.0.0.1.evil.example:6470": http.StatusMisdirectedRequest, "evil-localhost": http.StatusMisdirectedRequest,
	} {
		for _, path := range []string{"/healthz", "/catalog"} {
			conn, err := net.Dial("tcp", f.addr)
			if err != nil {
				t.Fatal(err)
			}
			if status, body := getHost(t, conn, path, host); status != want {
				t.Errorf("GET %s of %s: %d %s", path, host, status, body)
			}
			conn.Close()
		}
	}
	conn, err := net.Dial("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if status, body := getHost(t, conn, "/healthz", "mirador"); status != http.StatusOK {
		t.Errorf("over the socket: %d %s", status, body)
	}
}

func TestHostsOfTheConfiguration(t *testing.T) {
	s := New(Config{Hosts: []string{"Gateway.Example"}}, &scripted{})
	if !s.servesHost("gateway.example:6470") || s.servesHost("other.example:6470") {
		t.Error("the server does not serve exactly the host names of the configuration")
	}
}
