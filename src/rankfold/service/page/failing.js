/** What to do about an error of the server. */

import { ApiError } from "./api.js";
import { openKey } from "./dialogs.js";
import { announce, byId } from "./elements.js";
import { clearFieldErrors, showBusy, showFieldErrors, showNotice } from "./notice.js";

/** Seconds after which the server gave up, where it was not just busy: asking again would not help. */
const LONG = 5;

/** Say what went wrong, in one sentence. @param {unknown} error */
export function wrong(error) {
  if (!(error instanceof ApiError)) throw error;
  if (error.status === 401) openKey();
  return error.errors[0]?.message ?? error.message;
}

/**
 * Say it where it belongs, and offer to try again.
 * @param {unknown} error
 * @param {() => void} again
 */
export function showFailure(error, again) {
  if (!(error instanceof ApiError)) {
    showNotice("Something went wrong on this page.", {
      label: "Load it again",
      act: () => location.reload(),
    });
    throw error;
  }
  clearFieldErrors();
  if (error.status === 401) {
    openKey();
    showNotice("This server asks for an API key.", { label: "Enter key", act: openKey });
  } else if (error.status === 503 && error.took < LONG) {
    const away = error.message.includes("database");
    const reason = away ? "The database of this index does not answer." : "The server is busy.";
    showBusy(error.retryAfter ?? 2, again, reason);
  } else if (error.status === 0)
    showNotice(`${error.message} What you see stays.`, { label: "Try again", act: again });
  else if (showFieldErrors(error)) announce(error.errors[0].message);
  else if (error.status === 404 || error.status === 413 || error.status === 422)
    byId("query-error").textContent = error.message;
  else showNotice(error.message, { label: "Try again", act: again });
}
