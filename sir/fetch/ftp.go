package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/jlaffaye/ftp"
)

// getFTP gets a file by FTP (RFC 959), in passive mode and from the server's own address only. Without
// a user it is anonymous.
func (f *Folder) getFTP(ctx context.Context, u *url.URL, to io.Writer) error {
	server, err := ftp.Dial(net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "21")), ftp.DialWithDialFunc(f.connect(ctx, u)))
	if err != nil {
		return err
	}
	defer func() { _ = server.Quit() }() // the file is complete, or another error says why not
	password, given := u.User.Password()
	if !given {
		password = "anonymous"
	}
	if err := server.Login(cmp.Or(u.User.Username(), "anonymous"), password); err != nil {
		return refusal(err)
	}
	// The path begins at the user's directory (RFC 1738, 3.2.2); %2F leads to the root.
	data, err := server.Retr(strings.TrimPrefix(u.Path, "/"))
	if err != nil {
		return refusal(err)
	}
	return errors.Join(f.copy(to, data), data.Close())
}

// refusal says what a server has answered.
func refusal(err error) error {
	if answer := (*textproto.Error)(nil); errors.As(err, &answer) {
		return fmt.Errorf("the server answered %d %s", answer.Code, answer.Msg)
	}
	return err
}

// connect returns a function that connects to a server. Its connections end with the context, and send
// no more than the folder may have.
func (f *Folder) connect(ctx context.Context, u *url.URL) func(network, address string) (net.Conn, error) {
	return func(network, address string) (net.Conn, error) {
		c, err := f.dialer(u).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { c.Close() })
		const replies = 1 << 20 // what the answers to commands may take
		return &connection{c, io.LimitReader(c, f.left+replies), stop}, nil
	}
}

// connection is a connection to a server that sends a limited number of bytes.
type connection struct {
	net.Conn
	limited io.Reader
	stop    func() bool
}

func (c *connection) Read(b []byte) (int, error) { return c.limited.Read(b) }

func (c *connection) Close() error {
	c.stop()
	return c.Conn.Close()
}
