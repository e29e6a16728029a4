package client

import "time"

var StateError = stateError

// SetPoll sets the pause between looks for a daemon in WaitFolders.
func SetPoll(c *Client, d time.Duration) { c.poll = d }
