package cli

import "mirador/mir/client"

// withGateway opens a connection for some requests.
func (g *globals) withGateway(f func(*client.Client) error) error {
	c, err := g.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

// answer sends a request whose answer may take a while.
func answer[T any](g *globals, ask func(*client.Client) (T, error)) (result T, err error) {
	return result, g.withGateway(func(c *client.Client) error {
		defer g.patience("waiting for the gateway")()
		result, err = ask(c)
		return err
	})
}
