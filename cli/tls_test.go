package cli

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTLS checks that with a certificate TCP speaks TLS, that the organisational unit of a client
// certificate gives its role, and that a certificate of another authority is refused.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := newAuthority(t), newAuthority(t)
	ours.issue(t, dir, "server", "")
	ours.issue(t, dir, "reader", "")
	ours.issue(t, dir, "controller", "mirador:control")
	theirs.issue(t, dir, "forger", "mirador:debug")
	ca := writePEM(t, dir, "ca.pem", "CERTIFICATE", ours.cert.Raw)
	s := startServe(t, os.Geteuid(), "--config", writeConfig(t, dir, ca))
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("the gateway's address is %s", s.url)
	}
	as := func(who string, args ...string) (string, string, int) {
		return s.mirador(t, "", append([]string{
			"--gateway", s.url, "--ca", ca, "--token-file", os.DevNull,
			"--cert", filepath.Join(dir, who+".pem"), "--key", filepath.Join(dir, who+".key"),
		}, args...)...)
	}
	if out, errs, status := as("reader", "apps", "--json"); status != 0 || !strings.Contains(out, "[") {
		t.Errorf("reader: status %d\n%s%s", status, out, errs)
	}
	if _, errs, status := as("reader", "attach", "1"); status != 1 || !strings.Contains(errs, "certificate reader has the role read") {
		t.Errorf("a reader that attaches: status %d, %s", status, errs)
	}
	if _, errs, status := as("controller", "attach", "999999999"); status != 1 || strings.Contains(errs, "role") {
		t.Errorf("a controller that attaches to nothing: status %d, %s", status, errs)
	}
	if _, _, status := as("forger", "apps"); status == 0 {
		t.Error("a certificate of another authority was taken")
	}
	if status, _ := curl(t, "--cacert", ca, s.url+"/apps"); status != 401 {
		t.Errorf("without a certificate: %d", status)
	}
}

// TestExpiredClientCertificate checks that the gateway refuses an expired certificate before it
// reads a request, whatever role the certificate names, and that our client explains the refusal.
func TestExpiredClientCertificate(t *testing.T) {
	dir := t.TempDir()
	ours := newAuthority(t)
	ours.issue(t, dir, "server", "")
	ours.issueUntil(t, dir, "former", "mirador:debug", time.Now().Add(-time.Hour))
	ca := writePEM(t, dir, "ca.pem", "CERTIFICATE", ours.cert.Raw)
	s := startServe(t, os.Geteuid(), "--config", writeConfig(t, dir, ca))
	pem, key := filepath.Join(dir, "former.pem"), filepath.Join(dir, "former.key")
	out, errs, status := s.mirador(t, "", "--gateway", s.url, "--ca", ca, "--token-file", os.DevNull, "--cert", pem, "--key", key, "apps")
	if status != exitUnreachable || out != "" || !strings.Contains(errs, "the client certificate "+pem+" expired at ") {
		t.Errorf("our client: status %d, %s%s", status, out, errs)
	}
	other := exec.Command("curl", "-sS", "--cacert", ca, "--cert", pem, "--key", key, s.url+"/apps")
	if out, err := other.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("curl: ")) {
		t.Errorf("curl: %v, %s", err, out)
	}
	if _, errs, status := s.mirador(t, "", "--gateway", "https://127.0.0.1:1", "--ca", ca, "--cert", pem, "--key", key, "apps"); status != exitUnreachable || !strings.Contains(errs, "connection refused") {
		t.Errorf("no gateway: status %d, %s", status, errs)
	}
}

// TestUnverifiedServer checks that our client sends nothing, not even its token, to a server whose
// certificate has expired or is of another authority, and says what to do.
func TestUnverifiedServer(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := newAuthority(t), newAuthority(t)
	ours.issue(t, dir, "valid", "")
	ours.issueUntil(t, dir, "former", "", time.Now().Add(-time.Hour))
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	authorities := map[*authority]string{
		ours: writePEM(t, dir, "ours.pem", "CERTIFICATE", ours.cert.Raw), theirs: writePEM(t, dir, "theirs.pem", "CERTIFICATE", theirs.cert.Raw),
	}
	for _, test := range []struct {
		name, certificate string
		trusts            *authority
		says              []string
	}{
		{"expired", "former", ours, []string{"certificate has expired", "with a certificate that is valid now"}},
		{"another authority", "valid", theirs, []string{"unknown authority", "name the authority that signed it with --ca"}},
		{"no authority", "valid", nil, []string{"unknown authority", "--ca"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			pair, err := tls.LoadX509KeyPair(filepath.Join(dir, test.certificate+".pem"), filepath.Join(dir, test.certificate+".key"))
			if err != nil {
				t.Fatal(err)
			}
			reached := false
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
			server.StartTLS()
			args := []string{"--gateway", server.URL, "--token-file", token, "apps"}
			if test.trusts != nil {
				args = append(args, "--ca", authorities[test.trusts])
			}
			var out, errs bytes.Buffer
			status := Main(args, Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
			server.Close() // waits for the server's goroutines
			if status != exitUnreachable || reached || out.Len() > 0 {
				t.Errorf("status %d, a request arrived: %v, %s", status, reached, out.String())
			}
			for _, words := range append(test.says, "nothing was sent to "+server.URL) {
				if !strings.Contains(errs.String(), words) {
					t.Errorf("no %q in: %s", words, errs.String())
				}
			}
		})
	}
}

func writeConfig(t *testing.T, dir, ca string) string {
	t.Helper()
	text, err := json.Marshal(map[string]string{
		"certificate": filepath.Join(dir, "server.pem"), "key": filepath.Join(dir, "server.key"), "client_authority": ca,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, &template, &template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	return a
}

// issue writes NAME.pem and NAME.key.
func (a *authority) issue(t *testing.T, dir, name, unit string) {
	t.Helper()
	a.issueUntil(t, dir, name, unit, time.Now().Add(time.Hour))
}

// issueUntil is issue for a certificate that is valid until end.
func (a *authority) issueUntil(t *testing.T, dir, name, unit string, end time.Time) {
	t.Helper()
	key := newKey(t)
	template := x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: end,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if unit != "" {
		template.Subject.OrganizationalUnit = []string{unit}
	}
	raw, err := x509.CreateCertificate(rand.Reader, &template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, dir, name+".pem", "CERTIFICATE", raw)
	writePEM(t, dir, name+".key", "EC PRIVATE KEY", secret)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t *testing.T, dir, name, kind string, raw []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
