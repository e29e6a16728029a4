package streamable

// ParseEventID reads the id of an event.
func ParseEventID(text string) (EventID, bool) { return parseEventID(text) }
