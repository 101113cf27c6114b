package gateway

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mirador/omis/host/owned"
)

// TokenFile is the name of the token's file in the data directory.
const TokenFile = "token"

// Token is the secret that callers over TCP present.
type Token struct {
	secret string
	path   string
}

// LoadToken reads the token of a data directory, and creates one at the first start. The
// directory and the file must belong to this process's user. LoadToken refuses a file that
// other users may read, because they may know the secret.
func LoadToken(dir string) (Token, error) {
	dir, err := owned.Directory(dir)
	if err != nil {
		return Token{}, fmt.Errorf("cannot use the data directory: %w", err)
	}
	path := filepath.Join(dir, TokenFile)
	t, err := readToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeToken(dir, path)
	}
	return t, err
}

func readToken(path string) (Token, error) {
	file, err := owned.Open(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Token{}, err
	}
	if err != nil {
		return Token{}, fmt.Errorf("cannot use the token: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Token{}, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return Token{}, fmt.Errorf("cannot use the token in %s: others may read it (mode %04o); remove it and start again, a new one is made", path, info.Mode().Perm())
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return Token{}, err
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < 32 {
		return Token{}, fmt.Errorf("cannot use the token in %s: it is too short; remove it and start again, a new one is made", path)
	}
	return Token{secret: secret, path: path}, nil
}

// makeToken writes a file with another name and links it, so that two servers that start at
// the same time read the same complete file.
func makeToken(dir, path string) (Token, error) {
	var raw [32]byte
	rand.Read(raw[:])                               // never fails (crypto/rand, since Go 1.24)
	file, err := os.CreateTemp(dir, TokenFile+".*") // mode 0600
	if err != nil {
		return Token{}, err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(hex.EncodeToString(raw[:]) + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return Token{}, err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return Token{}, err
	}
	return readToken(path)
}

func (t Token) matches(shown string) bool {
	return t.secret != "" && subtle.ConstantTimeCompare([]byte(t.secret), []byte(shown)) == 1
}

// Path returns the name of the token's file.
func (t Token) Path() string { return t.path }
