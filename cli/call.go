package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"mirador/mir/client"
)

// call sends one request to the gateway that the flags name.
func (g *globals) call(ctx context.Context, req client.Request, result any) error {
	c, err := g.connect()
	if err != nil {
		return err
	}
	defer c.Close()
	defer g.patience("waiting for the gateway")()
	return call(ctx, c, req, result)
}

// call sends a request whose reply is JSON, and decodes the reply into result. If result is nil,
// call ignores the reply.
func call(ctx context.Context, c *client.Client, req client.Request, result any) error {
	req.Accept = "application/json"
	reply, err := c.Do(ctx, req)
	if err != nil {
		return err
	}
	if reply.Failed() {
		return errors.New(reply.Message())
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(reply.Body, result); err != nil {
		return fmt.Errorf("cannot read the gateway's reply: %w", err)
	}
	return nil
}
