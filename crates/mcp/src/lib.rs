//! The tools by which an MCP client asks people through Chips.
